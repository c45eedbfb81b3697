"""As much of Hugging Face's hub as `huggingface_hub` needs to push and to fetch."""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hub:
    """A hub on this machine, of any repositories.

    Attributes:
        revisions: Repository -> revision -> file -> its bytes.
        asked: The requests: `(method, path)`.
        private: Repositories that were made private.
        token: The token that it takes.
    """

    def __init__(self, token="secret"):
        self.revisions, self.asked, self.private = {}, [], set()
        self.token = token
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do(self):
                length = int(self.headers.get("Content-Length") or 0)
                body, path = self.rfile.read(length), self.path.partition("?")[0]
                hub.asked.append((self.command, path))
                hub.answer(self, path, body)

            do_GET = do_POST = do_HEAD = do

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request, path, body):
        writes = request.command == "POST" and path != "/api/validate-yaml"
        if writes and request.headers.get("Authorization") != f"Bearer {self.token}":
            return send(request, {"error": "Invalid credentials"}, 401)
        if path == "/api/validate-yaml":
            return send(request, {"errors": [], "warnings": []})
        if path == "/api/repos/create":
            return self.create(request, json.loads(body))
        if found := re.fullmatch(r"/api/models/(\w+/[\w-]+)/(\w+)/([\w.-]+)", path):
            name, action, revision = found.groups()
            return getattr(self, action)(request, name, revision, body)
        if found := re.fullmatch(r"/(\w+/[\w-]+)/resolve/([\w.-]+)/(.+)", path):
            name, commit, file = found.groups()
            return self.resolve(request, name, commit, file)
        return send(request, {"error": f"{path} is not here"}, 404)

    def create(self, request, wanted):
        name = "/".join(filter(None, (wanted.get("organization"), wanted["name"])))
        if "/" not in name:
            name = f"owner/{name}"
        url = {"url": f"{self.url}/{name}"}
        if name in self.revisions:
            return send(request, {**url, "error": "exists"}, 409)
        self.revisions[name] = {"main": {}}
        if wanted.get("private") or wanted.get("visibility") == "private":
            self.private.add(name)
        return send(request, url)

    def branch(self, request, name, revision, body):
        if revision in self.revisions[name]:
            return send(request, {"error": "Reference already exists"}, 409)
        self.revisions[name][revision] = dict(self.revisions[name]["main"])
        return send(request, {})

    def preupload(self, request, name, revision, body):
        if name not in self.revisions:
            return send(request, {"error": "Repository not found"}, 404)
        files = [
            {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
            for file in json.loads(body)["files"]
        ]
        return send(request, {"files": files})

    def commit(self, request, name, revision, body):
        files = self.revisions[name][revision]
        for line in body.splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                value = entry["value"]
                files[value["path"]] = base64.b64decode(value["content"])
        commit = self.commit_of(name, revision)
        found = {"success": True, "commitOid": commit}
        url = f"{self.url}/{name}/commit/{commit}"
        return send(request, {**found, "commitUrl": url})

    def commit_of(self, name, revision):
        files = self.revisions[name][revision]
        return hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()

    def revision(self, request, name, revision, body=None):
        if revision not in self.revisions.get(name, {}):
            return send(request, {"error": "Revision Not Found"}, 404)
        siblings = [{"rfilename": f} for f in self.revisions[name][revision]]
        commit = self.commit_of(name, revision)
        return send(request, {"id": name, "sha": commit, "siblings": siblings})

    def tree(self, request, name, commit, body):
        entries = [
            {
                "type": "file",
                "path": file,
                "size": len(content),
                "oid": hashlib.sha1(content).hexdigest(),
            }
            for file, content in self.at(name, commit).items()
        ]
        return send(request, entries)

    def at(self, name, commit):
        revisions = self.revisions[name]
        return next(
            files
            for r, files in revisions.items()
            if commit in (r, self.commit_of(name, r))
        )

    def resolve(self, request, name, commit, file):
        content = self.at(name, commit).get(file)
        if content is None:
            return send(request, {"error": "Entry not found"}, 404)
        etag = hashlib.sha1(content).hexdigest()
        return send(request, content, ETag=etag, **{"X-Repo-Commit": commit})


def send(request, content, status=200, **headers):
    if not isinstance(content, bytes):
        if status == 404 and "Revision" in content["error"]:
            headers["X-Error-Code"] = "RevisionNotFound"
        content = json.dumps(content).encode()
        headers["Content-Type"] = "application/json"
    request.send_response(status)
    for name, value in {**headers, "Content-Length": len(content)}.items():
        request.send_header(name, str(value))
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(content)
