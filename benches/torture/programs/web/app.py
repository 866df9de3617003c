"""Flask under gunicorn: a template, a sort, a recursion, an exception, a hash."""
import hashlib

from flask import Flask, jsonify, render_template_string, request

app = Flask(__name__)
PAGE = "<ul>{% for row in rows %}<li>{{ loop.index }} {{ row.name|upper }} {{ row.total }}</li>{% endfor %}</ul>"


def total(depth, n):
    return n % 7 + total(depth - 1, n + 1) if depth else n


def rows(n):
    return sorted(({"name": f"row{i * n % 89}", "total": total(i % 30, n)} for i in range(60)), key=lambda row: (row["total"], row["name"]))


@app.get("/page/<int:n>")
def page(n):
    return render_template_string(PAGE, rows=rows(n))


@app.get("/json/<int:n>")
def as_json(n):
    try:
        return jsonify(rows=rows(n)[:10], share=n // (n % 5))
    except ZeroDivisionError as error:
        return jsonify(why=str(error)), 422


@app.post("/hash")
def digest():
    return hashlib.pbkdf2_hmac("sha256", request.get_data(), b"salt", 500).hex()
