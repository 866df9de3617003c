take(JSON.parse($("data").textContent)); head(); addressed();
