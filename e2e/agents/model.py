"""A model that follows a script, behind the four protocols that coding agents speak: Anthropic messages, OpenAI chat completions and
responses, and Gemini. It runs in a thread of whoever plays the story, so an outside change can be made between two turns."""

import http.server
import json
import re
import socketserver
import threading

SUMMARY = "<summary>Some files were read and edited.</summary><state_snapshot>Some files were read and edited.</state_snapshot>"
ASKS_FOR_SUMMARY = re.compile(r"(?i)detailed summary|summari[sz]e|context checkpoint|state_snapshot|anchored summary")


class Turn:
    """One answer: tool calls as (name, arguments), or a text; an act before it; the number of tokens that it claims to have read."""

    def __init__(self, *calls, text="", before=None, tokens=100):
        self.calls, self.text, self.before, self.tokens = list(calls), text, before, tokens


class Model:
    """Plays turns, one for each request that offers tools. Keeps the requests."""

    def __init__(self, turns):
        self.turns = list(turns)
        self.lock = threading.Lock()
        self.prompts = []
        self.summaries = 0
        server = type("Server", (socketserver.ThreadingMixIn, http.server.HTTPServer), {"daemon_threads": True, "handle_error": lambda *_: None})
        self.server = server(("127.0.0.1", 0), type("Bound", (Handler,), {"model": self}))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()

    def told(self):
        """All that the model has read, in one text."""
        return "\n".join(self.prompts)

    def answer(self, body, offers_tools):
        """The next turn."""
        with self.lock:
            said = last_words(body)
            if ASKS_FOR_SUMMARY.search(said) and SUMMARY not in said:
                self.summaries += 1
                return Turn(text=SUMMARY)
            if not offers_tools:
                return Turn(text="a title")
            self.prompts.append(plain(body))
            turn = self.turns.pop(0) if self.turns else Turn(text="done")
            if turn.before:
                turn.before()
            return turn


def plain(value):
    """All texts of a request."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(plain(item) for item in value.values())
    if isinstance(value, list):
        return "\n".join(plain(item) for item in value)
    return ""


def last_words(body):
    """The last message of the person or the program."""
    said = body.get("messages") or body.get("contents") or body.get("input") or []
    said = said if isinstance(said, list) else []
    mine = [item for item in said if isinstance(item, dict) and item.get("role") == "user"]
    if not mine:
        return ""
    content = mine[-1].get("content") or mine[-1].get("parts") or ""
    parts = content if isinstance(content, list) else [content]
    texts = [part if isinstance(part, str) else part.get("text") or "" for part in parts]
    return "\n".join(text for text in texts if not text.lstrip().startswith("<system-reminder>"))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = None

    def log_message(self, *_):
        pass

    def body(self):
        if (self.headers.get("transfer-encoding") or "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        whole = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def send(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, data in events:
            data = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(((f"event: {name}\n" if name else "") + f"data: {data}\n\n").encode())
        self.close_connection = True

    def do_GET(self):
        name = "scripted"
        self.send({"object": "list", "data": [{"id": name, "object": "model", "type": "model"}], "models": [{"name": f"models/{name}", "slug": name}]})

    do_HEAD = do_GET

    def do_CONNECT(self):
        self.send_error(502)

    def do_POST(self):
        raw = self.body()
        path = self.path.split("?")[0]
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        if path.endswith("count_tokens") or path.endswith(":countTokens"):
            self.send({"input_tokens": len(raw) // 4, "totalTokens": len(raw) // 4})
        elif path.endswith("/messages"):
            self.say_anthropic(body)
        elif path.endswith("/chat/completions"):
            self.say_chat(body)
        elif path.endswith("/responses"):
            self.say_responses(body)
        elif "enerateContent" in path:
            self.say_gemini(body, "stream" in path)
        else:
            self.send({})

    def say_anthropic(self, body):
        turn = self.model.answer(body, bool(body.get("tools")))
        blocks = [{"type": "text", "text": turn.text}] if turn.text else []
        blocks += [{"type": "tool_use", "id": unique("toolu"), "name": name, "input": arguments} for name, arguments in turn.calls]
        stop = "tool_use" if turn.calls else "end_turn"
        usage = {"input_tokens": turn.tokens, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {"id": unique("msg"), "type": "message", "role": "assistant", "model": body.get("model"), "stop_sequence": None, "usage": usage}
        if not body.get("stream"):
            return self.send({**message, "content": blocks, "stop_reason": stop})
        events = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}]
        for index, block in enumerate(blocks):
            is_text = block["type"] == "text"
            start = {**block, "text": ""} if is_text else {**block, "input": {}}
            delta = {"type": "text_delta", "text": block["text"]} if is_text else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events += [
                {"type": "content_block_start", "index": index, "content_block": start},
                {"type": "content_block_delta", "index": index, "delta": delta},
                {"type": "content_block_stop", "index": index},
            ]
        events += [{"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}, {"type": "message_stop"}]
        self.stream([(event["type"], event) for event in events])

    def say_chat(self, body):
        turn = self.model.answer(body, bool(body.get("tools")))
        calls = [
            {"index": index, "id": unique("call"), "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for index, (name, arguments) in enumerate(turn.calls)
        ]
        finish = "tool_calls" if calls else "stop"
        usage = {"prompt_tokens": turn.tokens, "completion_tokens": 10, "total_tokens": turn.tokens + 10}
        base = {"id": unique("chatcmpl"), "created": 1, "model": body.get("model")}
        if not body.get("stream"):
            message = {"role": "assistant", "content": turn.text or None, **({"tool_calls": calls} if calls else {})}
            return self.send({**base, "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage})
        chunk = lambda delta, finish=None: {**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        events = [chunk({"role": "assistant", "content": turn.text})]
        events += [chunk({"tool_calls": [call]}) for call in calls]
        events += [chunk({}, finish), {**base, "object": "chat.completion.chunk", "choices": [], "usage": usage}, "[DONE]"]
        self.stream([(None, event) for event in events])

    def say_responses(self, body):
        turn = self.model.answer(body, bool(body.get("tools")))
        kinds = {tool.get("name"): tool.get("type") for tool in body.get("tools") or []}
        items = []
        if turn.text:
            content = [{"type": "output_text", "text": turn.text, "annotations": []}]
            items.append({"type": "message", "id": unique("msg"), "role": "assistant", "status": "completed", "content": content})
        for name, arguments in turn.calls:
            item = {"id": unique("fc"), "call_id": unique("call"), "name": name, "status": "completed"}
            if kinds.get(name) == "custom":
                items.append({**item, "type": "custom_tool_call", "input": arguments["input"]})
            else:
                items.append({**item, "type": "function_call", "arguments": json.dumps(arguments)})
        usage = {
            "input_tokens": turn.tokens, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": turn.tokens + 10,
        }
        response = {"id": unique("resp"), "object": "response", "created_at": 1, "status": "completed", "model": body.get("model"), "output": items, "usage": usage}
        events = [{"type": "response.created", "response": {**response, "status": "in_progress", "output": [], "usage": None}}]
        events += [{"type": "response.output_item.done", "output_index": index, "item": item} for index, item in enumerate(items)]
        events += [{"type": "response.completed", "response": response}]
        self.stream([(event["type"], event) for event in events])

    def say_gemini(self, body, is_stream):
        turn = self.model.answer(body, bool(body.get("tools")))
        wanted = (body.get("generationConfig") or {}).get("responseJsonSchema")
        text = json.dumps(fitting(wanted)) if wanted and not turn.calls else turn.text
        parts = [{"text": text}] if text else []
        parts += [{"functionCall": {"id": unique("call"), "name": name, "args": arguments}, "thoughtSignature": "c2NyaXB0ZWQ="} for name, arguments in turn.calls]
        usage = {"promptTokenCount": turn.tokens, "candidatesTokenCount": 10, "totalTokenCount": turn.tokens + 10}
        answer = {"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}], "usageMetadata": usage}
        return self.stream([(None, answer)]) if is_stream else self.send(answer)


def fitting(schema):
    """The least value that fits a schema; a choice is decided for the user's side."""
    choices = schema.get("enum")
    if choices:
        return "user" if "user" in choices else choices[0]
    kind = schema.get("type", "object")
    if kind == "object":
        return {name: fitting(field) for name, field in (schema.get("properties") or {}).items()}
    return {"string": "x", "integer": 1, "number": 1, "boolean": False, "array": []}.get(kind)


def unique(prefix):
    unique.last += 1
    return f"{prefix}_{unique.last:08d}"


unique.last = 0
