"""Every case by its name: a function that runs a program in a `Place` and gives its findings.

Findings are {what: value}; values are compared as text. A case returns None where something it needs is not
installed (then it has said so). Not here: how runs are compared.
"""
import collectors
import interpreters
import services
import tools
import web

CASES = {
    "redis": services.redis,
    "nginx": services.nginx,
    "postgres": services.postgres,
    "sqlite": services.sqlite,
    "shell": interpreters.shell,
    "perl": interpreters.perl,
    "perl-core": interpreters.perl_core,
    "node": interpreters.node,
    "java": interpreters.java,
    "go": interpreters.go,
    "flask": web.flask,
    "psgi": web.psgi,
    "express": web.express,
    "fpm": web.fpm,
    "sinatra": web.sinatra,
    "tomcat": web.tomcat,
    "lisp": collectors.lisp,
    "mono": collectors.mono,
    "ruby": collectors.ruby,
    "guile": collectors.guile,
    "racket": collectors.racket,
    "haskell": collectors.haskell,
    "ocaml": collectors.ocaml,
    "r": collectors.r,
    "prolog": collectors.prolog,
    "compiler": tools.compiler,
    "chromium": tools.chromium,
    "loads": tools.loads,
    "threads": tools.threads,
    "stress": tools.stress,
    "python": interpreters.python_tests(*interpreters.PYTHON_TESTS),
    "python-long": interpreters.python_tests(*interpreters.PYTHON_LONG_TESTS),
}
