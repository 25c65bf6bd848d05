"""What nginx and HAProxy are told."""

from boardcluster.services.http.config import render_balancer, render_compute, render_server


def server(user: str) -> str:
    return render_server(root="/srv", address="198.18.0.3", port=8001, cores=4, user=user)


def test_a_server_listens_at_its_node_alone_and_keeps_everything_in_its_folder() -> None:
    text = server("www-data")

    assert "listen 198.18.0.3:8001 " in text
    assert text.count("listen ") == 1
    assert text.startswith("user www-data;\n")
    places = [word.rstrip(";") for word in text.split() if word.startswith("/") and "{" not in word]
    own = [place for place in places if place not in ("/pages/", "/compute", "/status", "/")]
    assert {place for place in own if not place.startswith("/srv")} == {
        "/usr/lib/nginx/modules/ngx_http_js_module.so"
    }


def test_without_root_no_user_is_named() -> None:
    assert server("").startswith("daemon off;\n")


def test_a_balancer_checks_as_slowly_as_its_nodes_are() -> None:
    servers = {"worker1": "198.18.0.3:8001", "worker2": "198.18.0.4:8001"}

    def text(dilation: float) -> str:
        return render_balancer(
            servers, address="198.18.0.2", port=8000, cores=2, user="haproxy", dilation=dilation
        )

    assert "server worker1 198.18.0.3:8001\n    server worker2 198.18.0.4:8001" in text(1.0)
    assert "bind 198.18.0.2:8000 " in text(1.0)
    assert "    user haproxy\n" in text(1.0)
    assert "check inter 200ms" in text(1.0)
    assert "check inter 500ms" in text(2.5)
    many = render_balancer(
        servers, address="198.18.0.2", port=8000, cores=128, user="haproxy", dilation=1.0
    )
    assert "nbthread 64\n" in many


def test_the_page_that_computes_has_its_rounds() -> None:
    assert "round < 200;" in render_compute(200)
