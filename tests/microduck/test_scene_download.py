"""The upstream model is fetched whole or not at all, over https alone, and must stay what it was."""

import io
import threading
import zipfile
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from torchrl.envs import MicroDuckEnv as TorchRLMicroDuckEnv

from hardware.errors import SceneError
from microduck.scene import resolve, resolve_scene
from microduck.scene.download import COMMIT, MODEL_FOLDER, Source, digest, fetch

TOP = f"microduck_rl-{COMMIT}"
SCENE = f"{TOP}/{MODEL_FOLDER}/scene_walk.xml"


def zipped(**files):
    """Return a zip of an upstream checkout, with files of the model changed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(f"{TOP}/README.md", "upstream")
        for name, text in {"scene_walk.xml": "<mujoco/>", "robot_walk.xml": "<mujoco/>", **files}.items():
            made.writestr(f"{TOP}/{MODEL_FOLDER}/{name}", text)
    return buffer.getvalue()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.visits += 1
        with suppress(ConnectionError):  # those who gave up
            self.server.answer(self)

    def log_message(self, *arguments):
        pass


def send(handler, data, length=None):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(data) if length is None else length))
    handler.end_headers()
    handler.wfile.write(data)


@pytest.fixture
def server(monkeypatch):
    """A web server on this machine; a test sets how it answers."""
    monkeypatch.setenv("no_proxy", "*")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.visits, server.answer = 0, lambda handler: send(handler, zipped())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_address[1]}/{COMMIT}.zip"
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cache(tmp_path, server, monkeypatch):
    """The folder of checkouts, with the server in GitHub's place."""
    monkeypatch.delenv("MICRODUCK_RL_ROOT", raising=False)
    monkeypatch.setattr(resolve, "SOURCE", Source(server.url, plain_http=True))
    return tmp_path / "cache"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_model_is_fetched_once_and_found_from_then_on(cache, server):
    for ask in ({"download": True}, {"download": True}, {"microduck_root": "upstream"}):
        assert resolve_scene(root=cache, **ask) == (cache / SCENE).resolve()
    assert server.visits == 1
    assert (cache / TOP / "README.md").read_text() == "upstream"
    assert names(cache) == [TOP, f"{TOP}.sha256"]
    record = (cache / f"{TOP}.sha256").read_text().strip()
    assert record == digest((cache / SCENE).parent)


def test_digest_is_that_of_names_and_contents(tmp_path):
    for folder in "ab":
        (tmp_path / folder / "assets").mkdir(parents=True)
        (tmp_path / folder / "x.xml").write_text("x")
        (tmp_path / folder / "assets" / "y.stl").write_text("y")
    first = digest(tmp_path / "a")
    # cd a; find * -type f | LC_ALL=C sort | xargs sha256sum | sha256sum
    assert first == "215d36bcd2a27633798c57874f0ace290be6eafb4deaa667397b9eff6c181f95"
    assert first == digest(tmp_path / "b")
    (tmp_path / "b" / "x.xml").write_text("X")
    (tmp_path / "a" / "x.xml").rename(tmp_path / "a" / "z.xml")
    assert len({first, digest(tmp_path / "a"), digest(tmp_path / "b")}) == 3


def test_checkout_without_its_scene_is_replaced(cache, server):
    resolve_scene(root=cache, download=True)
    (cache / SCENE).unlink()
    assert resolve_scene(root=cache, download=True) == (cache / SCENE).resolve()
    assert names(cache) == [TOP, f"{TOP}.sha256"]


def test_force_fetches_again(cache, server):
    resolve_scene(root=cache, download=True)
    (cache / TOP / "README.md").write_text("changed")
    assert resolve_scene(root=cache, download="force") == (cache / SCENE).resolve()
    assert server.visits == 2
    assert (cache / TOP / "README.md").read_text() == "upstream"
    assert names(cache) == [TOP, f"{TOP}.sha256"]


def test_changed_checkout_is_refused_naming_both_digests_and_the_way_out(cache):
    model = resolve_scene(root=cache, download=True).parent
    before = digest(model)
    (model / "robot_walk.xml").write_text("<mujoco model='other'/>")
    for ask in ({"download": True}, {"microduck_root": "upstream"}):
        with pytest.raises(SceneError, match=f"{digest(model)}, not {before}; remove .*{TOP}.sha256"):
            resolve_scene(root=cache, **ask)
    (cache / f"{TOP}.sha256").unlink()
    assert resolve_scene("upstream", root=cache).parent == model


def test_checkout_is_shared_with_torchrl_which_keeps_no_record(cache, server):
    resolve_scene(root=cache, download=True)
    assert TorchRLMicroDuckEnv.resolve_scene(root=cache) == (cache / SCENE).resolve()
    (cache / f"{TOP}.sha256").unlink()  # as TorchRL leaves it
    assert resolve_scene("upstream", root=cache) == (cache / SCENE).resolve()


def test_other_files_under_the_same_commit_are_refused_and_the_old_ones_stay(cache, server):
    model = resolve_scene(root=cache, download=True).parent
    before = digest(model)
    server.answer = lambda handler: send(handler, zipped(**{"robot_walk.xml": "<mujoco model='other'/>"}))
    with pytest.raises(SceneError, match=f"not {before}"):
        resolve_scene(root=cache, download="force")
    assert digest(model) == before
    assert names(cache) == [TOP, f"{TOP}.sha256"]


def test_digest_that_the_user_expects_decides(cache, server, tmp_path):
    right = digest(resolve_scene(root=tmp_path / "other", download=True).parent)
    with pytest.raises(SceneError, match=f"has the SHA-256 {right}, not {'0' * 64}"):
        resolve_scene(root=cache, download=f"sha256:{'0' * 64}")
    assert names(cache) == []
    assert resolve_scene(root=cache, download=f"sha256:{right}") == (cache / SCENE).resolve()


def test_hostile_archive_leaves_nothing_behind(cache, server):
    buffer = io.BytesIO(zipped())
    with zipfile.ZipFile(buffer, "a") as made:
        made.writestr(f"{TOP}/../../../evil", "evil")
    server.answer = lambda handler: send(handler, buffer.getvalue())
    with pytest.raises(SceneError, match="outside its folder"):
        resolve_scene(root=cache, download=True)
    assert names(cache) == []
    assert names(cache.parent) == ["cache"]


def test_archive_without_the_scene_is_refused(cache, server):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr(f"{TOP}/README.md", "")
    server.answer = lambda handler: send(handler, buffer.getvalue())
    with pytest.raises(SceneError, match=rf"holds no {TOP}/{MODEL_FOLDER}/scene_walk\.xml"):
        resolve_scene(root=cache, download=True)
    assert names(cache) == []


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_download_that_ends_early_is_refused(cache, server, kept):
    data = zipped(**{"a.stl": "mesh" * 999})
    server.answer = lambda handler: send(handler, data[: int(kept * len(data))], length=len(data))
    with pytest.raises(SceneError, match="damaged"):
        resolve_scene(root=cache, download=True)
    assert names(cache) == []


def test_page_that_does_not_exist_is_reported_with_its_code(cache, server):
    server.answer = lambda handler: handler.send_error(404)
    with pytest.raises(
        SceneError,
        match=r"404.*try again, name a checkout that you have as microduck_root, or leave download",
    ):
        resolve_scene(root=cache, download=True)


def test_answer_that_is_no_http_is_reported(cache, server):
    server.answer = lambda handler: handler.wfile.write(b"SSH-2.0-OpenSSH\r\n")
    with pytest.raises(SceneError, match="cannot download"):
        resolve_scene(root=cache, download=True)


def test_endless_download_is_cut_off(tmp_path, server):
    def flood(handler):
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(bytes(1 << 16))

    server.answer = flood
    with pytest.raises(SceneError, match="larger than 1000000 bytes"):
        fetch(Source(server.url, plain_http=True, most_bytes=1_000_000), tmp_path / TOP)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("limit", "reason"), [({"silence": 0.1}, "timed out"), ({"deadline": 0.2}, "not done after")]
)
def test_server_that_stalls_or_trickles_is_given_up(tmp_path, server, limit, reason):
    given_up = threading.Event()

    def trickle(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(100):
            if given_up.wait(0.02 if "deadline" in limit else 2):
                break
            handler.wfile.write(b"P")

    server.answer = trickle
    with pytest.raises(SceneError, match=reason):
        fetch(Source(server.url, plain_http=True, **limit), tmp_path / TOP)
    given_up.set()
    assert names(tmp_path) == []


def test_connection_without_encryption_is_refused_unless_allowed(tmp_path, server):
    with pytest.raises(SceneError, match="unknown url type: http"):
        fetch(Source(server.url), tmp_path / TOP)
    assert server.visits == 0


@pytest.mark.parametrize("address", ["file:///etc/hostname", "ftp://127.0.0.1/a.zip"])
def test_redirection_to_anything_else_is_refused(cache, server, address):
    def redirect(handler):
        handler.send_response(302)
        handler.send_header("Location", address)
        handler.end_headers()

    server.answer = redirect
    with pytest.raises(SceneError, match="cannot download"):
        resolve_scene(root=cache, download=True)


def test_two_who_download_at_once_get_one_whole_checkout(cache, server):
    both = threading.Barrier(2)

    def together(handler):
        both.wait(20)
        send(handler, zipped())

    server.answer = together
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(resolve_scene(root=cache, download=True)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(cache / SCENE).resolve()] * 2
    assert names(cache) == [TOP, f"{TOP}.sha256"]


def test_folder_that_cannot_be_made_is_reported_with_the_way_out(cache, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SceneError, match=r"cannot write .*; choose another root"):
        resolve_scene(root=tmp_path / "file", download=True)
