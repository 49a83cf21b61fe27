"""A check is a `with` block: it prints PASS when it comes to its end, FAIL with the reason when it does not."""

from contextlib import contextmanager

ENVIRONMENT = {"SUREHAND_POLICY_DURABILITY": "fast"}


@contextmanager
def check(fact):
    try:
        yield
    except Exception as why:
        while getattr(why, "exceptions", None):
            why = why.exceptions[0]
        why = f"{type(why).__name__}: {why}".replace("\n", "\\n")
        print(f"FAIL {fact} -- {why[:600]}")
    else:
        print(f"PASS {fact}")


def text(result):
    return "".join(block["text"] for block in result["content"])


def outcome(result):
    return result["_meta"]["surehand/result"]


def assert_done(result):
    assert not result.get("isError") and outcome(result)["success"] is True, result


def assert_refused(result, code, *words):
    assert result["isError"] is True and text(result).startswith("Error:"), result
    assert outcome(result)["success"] is False and outcome(result)["refusal"]["code"] == code, result
    assert all(word in text(result) for word in words), f"{words} not in {text(result)!r}"
