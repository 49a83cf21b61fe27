"""The part of an npm registry that an installation asks."""

import base64
import hashlib
import json
import tarfile
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote


class NpmRegistry(BaseHTTPRequestHandler):
    tarballs: dict[str, Path]

    @classmethod
    def of(cls, packages: Path) -> type["NpmRegistry"]:
        return type("NpmRegistryOf", (cls,), {"tarballs": {manifest(path)["name"]: path for path in packages.glob("*.tgz")}})

    def do_GET(self) -> None:
        name = unquote(self.path).lstrip("/").removesuffix("/-/package.tgz")
        path = self.tarballs.get(name)
        if path is None:
            self.send_error(404)
        elif self.path.endswith(".tgz"):
            self.answer(path.read_bytes(), "application/octet-stream")
        else:
            self.answer(json.dumps(self.document(name, path)).encode(), "application/json")

    def document(self, name: str, path: Path) -> dict:
        about = manifest(path)
        digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
        address = f"http://{self.headers['Host']}/{name}/-/package.tgz"
        about["dist"] = {"tarball": address, "integrity": f"sha512-{digest}"}
        # npm asks for a document without `scripts` in full, but with this word.
        about["hasInstallScript"] = "scripts" in about
        return {"name": name, "dist-tags": {"latest": about["version"]}, "versions": {about["version"]: about}}

    def answer(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def manifest(path: Path) -> dict:
    with tarfile.open(path) as tar:
        return json.load(tar.extractfile("package/package.json"))
