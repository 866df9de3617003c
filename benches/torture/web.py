"""Web applications in interpreted languages, in several processes under load: each answer, and how the server ends."""
import hashlib
import http.client
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from hosts import need, until
from place import PROGRAMS, lines_with
from real_hosts import answers, free_port

APPS = PROGRAMS / "web"
SECONDS, CLIENTS, REQUESTS = 15, 8, 240
BAD = ("rror", "rash", "egmentation", "aborted", "killed", "ignal", "nterrupted", "BUG")


def request(number):
    """(method, path, body) of a request."""
    if number % 3 == 2:
        return "POST", "/hash", b"%d" % number * (number * 37 % 2000)
    return "GET", f"/{('page', 'json')[number % 3]}/{number}", None


def client(port, first, end, found, lock):
    """Asks for all requests again and again, over connections that stay."""
    connection, number, count = http.client.HTTPConnection("127.0.0.1", port, timeout=60), first, 0
    while time.monotonic() < end:
        method, path, body = request(number)
        try:
            connection.request(method, path, body, {"Content-Type": "application/octet-stream"} if body is not None else {})
            answer = connection.getresponse()
            data = answer.status, hashlib.sha256(answer.read()).hexdigest()
        except http.client.RemoteDisconnected:
            connection.close()  # between two requests any server may
            continue
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            data = type(error).__name__, str(error)
        with lock:
            found[0] += 1
            found[1].setdefault(number, set()).add(data)
        number = (number + 1) % REQUESTS
    connection.close()


def served(place, port, host, name, ends_by=signal.SIGTERM):
    """The findings of a server that listens on this port: its answers under load, its end, what its log says."""
    until(lambda: answers(port), 40, name)
    found, lock, end = [0, {}], threading.Lock(), time.monotonic() + SECONDS
    clients = [threading.Thread(target=client, args=(port, i * REQUESTS // CLIENTS, end, found, lock)) for i in range(CLIENTS)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    host.send_signal(ends_by)
    exit_status = host.wait(60)
    print(f"{name}, {place.how}: {found[0]} answers", flush=True)
    several = {number: sorted(map(str, data)) for number, data in found[1].items() if len(data) > 1}
    statuses = sorted({str(status) for data in found[1].values() for status, _ in data})
    every = hashlib.sha256(repr([sorted(map(str, found[1].get(number, ()))) for number in range(REQUESTS)]).encode()).hexdigest()
    return {"exit": exit_status, "answers": every, "statuses": statuses, "requests with two answers": several,
            "log": sorted(set(lines_with(place.log(), *BAD)))[:5]}


def flask(place):
    """Flask under gunicorn: two processes with four threads each."""
    server = need("gunicorn", "gunicorn python3-flask")
    if not server:
        return None
    port = free_port()
    host = place.begin([server, "-w", 2, "--threads", 4, "-b", f"127.0.0.1:{port}", "--chdir", APPS, "--log-level", "error", "app:app"])
    return served(place, port, host, "flask")


def psgi(place):
    """A PSGI application under Starman, which forks three processes."""
    server = need("starman", "starman")
    if not server:
        return None
    port = free_port()
    host = place.begin([server, "--host", "127.0.0.1", "--port", port, "--workers", 3, "--env", "deployment", APPS / "app.psgi"])
    return served(place, port, host, "psgi", signal.SIGQUIT)


def express(place):
    """Express in two processes of node's cluster. NODE_PATH says where Express is."""
    node = need("node", "nodejs")
    environment = {"NODE_PATH": os.environ.get("NODE_PATH", "/usr/share/nodejs")}
    if not node or subprocess.run([node, "-e", "require('express')"], env={**os.environ, **environment}, stderr=subprocess.DEVNULL).returncode:
        print("left out: Express is not here (apt-get install node-express, or npm's and NODE_PATH)", flush=True)
        return None
    port = free_port()
    host = place.begin([node, APPS / "app.js", port], environment=environment)
    return served(place, port, host, "express")


def fpm(place):
    """PHP-FPM with three processes behind nginx."""
    server, nginx = need(os.environ.get("PHP_FPM", "php-fpm8.2"), "php-fpm"), need("nginx", "nginx-light")
    if not (server and nginx):
        return None
    port, config, site = free_port(), place.folder / "fpm.conf", place.folder / "nginx.conf"
    root = "user = root\ngroup = root\n" if os.getuid() == 0 else ""
    config.write_text(f"[global]\nerror_log = {place.folder}/fpm.log\n[www]\n{root}listen = {place.folder}/fpm.sock\npm = static\npm.max_children = 3\n"
                      "pm.max_requests = 500\nrequest_terminate_timeout = 0\n")
    temporary = " ".join(f"{name}_temp_path {place.folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    site.write_text(f"""user root; daemon off; pid {place.folder}/nginx.pid; error_log {place.folder}/log warn; events {{ }}
        http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port}; location / {{ fastcgi_pass unix:{place.folder}/fpm.sock;
        fastcgi_param SCRIPT_FILENAME {APPS}/app.php; fastcgi_param REQUEST_URI $request_uri; fastcgi_param REQUEST_METHOD $request_method;
        fastcgi_param CONTENT_LENGTH $content_length; fastcgi_param CONTENT_TYPE $content_type; }} }} }}""")
    host = place.begin([server, "-F", "-R", "-y", config])
    until((place.folder / "fpm.sock").exists, 20, "php-fpm")
    place.start([nginx, "-c", site, "-e", place.folder / "log"], False)
    found = served(place, port, host, "fpm")
    log = (place.folder / "fpm.log").read_text()
    return {**found, "fpm's log": [line for line in log.splitlines() if "WARNING" in line or "ERROR" in line][:5]}


def sinatra(place):
    """Sinatra under Puma: two processes with four threads each."""
    server = need("puma", "puma ruby-sinatra")
    if not server:
        return None
    port = free_port()
    host = place.begin([server, "-q", "-e", "production", "-w", 2, "-t", "4:4", "-b", f"tcp://127.0.0.1:{port}", APPS / "config.ru"])
    return served(place, port, host, "sinatra")


def tomcat(place):
    """A JSP page in Tomcat, with its threads; its own log says nothing of the place."""
    java, home = need("java", "openjdk-17-jre-headless"), Path("/usr/share/tomcat10")
    if not java or not home.exists():
        print("left out: Tomcat is not here (apt-get install tomcat10)", flush=True)
        return None
    port, base = free_port(), place.folder / "tomcat"
    pages = base / "webapps" / "ROOT"
    for folder in (base / "conf", base / "temp", pages / "WEB-INF"):
        folder.mkdir(parents=True)
    (base / "conf" / "server.xml").write_text(f"""<Server port="-1"><Service name="s"><Connector port="{port}" address="127.0.0.1"/>
        <Engine name="e" defaultHost="h"><Host name="h" appBase="webapps" errorReportValveClass=""/></Engine></Service></Server>""")
    (base / "conf" / "web.xml").write_text(Path("/etc/tomcat10/web.xml").read_text())
    (pages / "app.jsp").write_text((APPS / "app.jsp").read_text())
    (pages / "WEB-INF" / "web.xml").write_text("""<web-app><servlet><servlet-name>a</servlet-name><jsp-file>/app.jsp</jsp-file></servlet>
        <servlet-mapping><servlet-name>a</servlet-name><url-pattern>/*</url-pattern></servlet-mapping></web-app>""")
    jars = f"{home}/bin/bootstrap.jar:{home}/bin/tomcat-juli.jar"
    host = place.begin([java, "-Xmx256m", "-cp", jars, f"-Dcatalina.base={base}", f"-Dcatalina.home={home}", f"-Djava.io.tmpdir={base}/temp",
                        "org.apache.catalina.startup.Bootstrap", "start"])
    return served(place, port, host, "tomcat")
