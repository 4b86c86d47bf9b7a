"""Fake GitHub and Jira on loopback. They reject what the real ones reject, and keep issues, comments and states."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.http_server import Asked, Told, serving

REPO, GITHUB_TOKEN = "acme/train", "ghp-of-a-test"  # not secrets: made up for tests
PROJECT, JIRA_USER, JIRA_TOKEN = "ML", "bot@example.org", "api-token-of-a-test"


@dataclass
class Issue:
    name: str
    title: str
    text: str
    closed: bool = False
    reason: str | None = None
    comments: list[str] = field(default_factory=list)


@dataclass
class Tracker:
    """`lost`: this many next writes are done but not answered. `limited`: this many next calls are rate-limited.
    `indexed`: whether the search finds new issues already."""

    url: str = ""
    issues: dict[str, Issue] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    lost: int = 0
    limited: int = 0
    indexed: bool = True

    def answer(self, asked: Asked) -> Told:
        parts = urlsplit(asked.path)
        self.calls.append(f"{asked.method} {parts.path}")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        body = json.loads(asked.body) if asked.body else None
        told = self.refusal(asked) or self.route(asked.method, parts.path, query, body)
        if self.lost and asked.method != "GET":
            self.lost -= 1
            return Told(b"", 502)
        return told

    def refusal(self, asked: Asked) -> Told | None:
        raise NotImplementedError

    def route(self, method: str, path: str, query: dict[str, str], body: Any) -> Told:
        raise NotImplementedError


def told(document: Any, status: int = 200, **headers: str) -> Told:
    return Told(json.dumps(document).encode(), status, headers)


class FakeGitHub(Tracker):
    def refusal(self, asked: Asked) -> Told | None:
        if self.limited:
            self.limited -= 1
            limit = {"X-RateLimit-Remaining": "0", "Retry-After": "17"}
            return told({"message": "API rate limit exceeded"}, 403, **limit)
        if asked.headers.get("Authorization") != f"Bearer {GITHUB_TOKEN}":
            return told({"message": "Bad credentials"}, 401)
        if not asked.headers.get("User-Agent") or asked.headers.get("X-GitHub-Api-Version") != "2022-11-28":
            return told({"message": "Request forbidden by administrative rules"}, 403)
        return None

    def route(self, method: str, path: str, query: dict[str, str], body: Any) -> Told:
        if path == f"/repos/{REPO}":
            return told({"full_name": REPO, "has_issues": True})
        if path == "/search/issues":
            mark = re.fullmatch(rf'"(\w+)" in:body is:issue repo:{REPO}', query["q"])
            assert mark
            items = [self.form(one) for one in self.issues.values() if self.indexed and mark[1] in one.text]
            return told({"total_count": len(items), "incomplete_results": False, "items": items})
        if path == f"/repos/{REPO}/issues":
            return self.opened(body) if method == "POST" else self.listed(query)
        if found := re.fullmatch(rf"/repos/{REPO}/issues/(\d+)(/comments)?", path):
            issue = self.issues.get(found[1])
            if issue is None:
                return told({"message": "This issue was deleted"}, 410)
            return self.comment(method, issue, body) if found[2] else self.one(method, issue, body)
        return told({"message": "Not Found"}, 404)

    def listed(self, query: dict[str, str]) -> Told:
        assert (query["state"], query["sort"], query["direction"]) == ("all", "created", "desc")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", query["since"])
        first, each = (int(query["page"]) - 1) * int(query["per_page"]), int(query["per_page"])
        return told([self.form(one) for one in list(self.issues.values())[::-1]][first : first + each])

    def opened(self, body: Any) -> Told:
        if not body.get("title") or len(body["title"]) > 256 or len(body["body"]) > 65536:
            return told({"message": "Validation Failed"}, 422)
        number = str(len(self.issues) + 1)
        self.issues[number] = Issue(number, body["title"], body["body"])
        return told(self.form(self.issues[number]), 201)

    def one(self, method: str, issue: Issue, body: Any) -> Told:
        if method == "PATCH":
            reasons = {"closed": ("completed", "not_planned"), "open": ("reopened",)}
            if body["state_reason"] not in reasons[body["state"]]:
                return told({"message": "Validation Failed"}, 422)
            issue.closed, issue.reason = body["state"] == "closed", body["state_reason"]
        return told(self.form(issue))

    def comment(self, method: str, issue: Issue, body: Any) -> Told:
        if method == "GET":
            return told([{"id": at, "body": text} for at, text in enumerate(issue.comments)])
        issue.comments.append(body["body"])
        return told({"id": len(issue.comments)}, 201)

    def form(self, issue: Issue) -> dict[str, Any]:
        return {
            "number": int(issue.name),
            "title": issue.title,
            "body": issue.text,
            "state": "closed" if issue.closed else "open",
            "html_url": f"https://github.com/{REPO}/issues/{issue.name}",
        }


@dataclass
class FakeJira(Tracker):
    """`cloud`: has the search of Jira Cloud, else that of Data Center. `workflow`: the statuses and their
    categories."""

    cloud: bool = True
    workflow: dict[str, str] = field(
        default_factory=lambda: {"To Do": "new", "In Progress": "indeterminate", "Done": "done"}
    )

    def refusal(self, asked: Asked) -> Told | None:
        if self.limited:
            self.limited -= 1
            return told({}, 429, **{"Retry-After": "17"})
        pair = base64.b64encode(f"{JIRA_USER}:{JIRA_TOKEN}".encode()).decode()
        expected = f"Basic {pair}" if self.cloud else f"Bearer {JIRA_TOKEN}"
        if asked.headers.get("Authorization") != expected:
            return told({"errorMessages": ["You are not authenticated."]}, 401)
        if asked.body and not asked.headers["Content-Type"].startswith("application/json"):
            return told({"errorMessages": ["Unsupported Media Type"]}, 415)
        return None

    def route(self, method: str, path: str, query: dict[str, str], body: Any) -> Told:
        path = path.removeprefix("/rest/api/2")
        if path == f"/project/{PROJECT}":
            return told({"key": PROJECT})
        if path == ("/search/jql" if self.cloud else "/search"):
            return self.searched(query)
        if path == "/search":
            return told({"errorMessages": ["The requested API has been removed."]}, 410)
        if path == "/issue" and method == "POST":
            return self.opened(body["fields"])
        if found := re.fullmatch(rf"/issue/({PROJECT}-\d+)(/\w+)?", path):
            issue = self.issues.get(found[1])
            if issue is not None:
                return self.of_issue(method, issue, found[2], body)
        return told({"errorMessages": ["Issue does not exist or you do not have permission to see it."]}, 404)

    def searched(self, query: dict[str, str]) -> Told:
        asked = re.fullmatch(rf'project = "{PROJECT}" AND description ~ "(\w+)" ORDER BY created ASC', query["jql"])
        assert asked
        found = [one for one in self.issues.values() if self.indexed and asked[1] in one.text]
        return told({"issues": [{"key": one.name, "fields": {"description": one.text}} for one in found]})

    def opened(self, fields: dict[str, Any]) -> Told:
        problems = {
            "project": fields["project"] != {"key": PROJECT},
            "issuetype": fields["issuetype"] != {"name": "Bug"},
            "summary": not 0 < len(fields["summary"]) <= 255 or "\n" in fields["summary"],
            "description": len(fields["description"]) > 32767,
        }
        if any(problems.values()):
            return told({"errors": {name: "invalid" for name, wrong in problems.items() if wrong}}, 400)
        key = f"{PROJECT}-{len(self.issues) + 1}"
        self.issues[key] = Issue(key, fields["summary"], fields["description"])
        return told({"id": "1", "key": key, "self": f"{self.url}/rest/api/2/issue/1"}, 201)

    def of_issue(self, method: str, issue: Issue, part: str | None, body: Any) -> Told:
        if part is None:
            status = "Done" if issue.closed else "To Do"
            return told({"key": issue.name, "fields": {"status": self.status(status)}})
        if part == "/comment":
            if method == "GET":
                return told({"comments": [{"body": text} for text in issue.comments[::-1]]})
            issue.comments.append(body["body"])
            return told({"id": "1"}, 201)
        assert part == "/transitions"
        steps = {str(at): name for at, name in enumerate(self.workflow, 11)}
        if method == "GET":
            return told({"transitions": [{"id": step, "to": self.status(name)} for step, name in steps.items()]})
        issue.reason = steps[body["transition"]["id"]]
        issue.closed = self.workflow[issue.reason] == "done"
        return Told(b"", 204)

    def status(self, name: str) -> dict[str, Any]:
        return {"name": name, "statusCategory": {"key": self.workflow.get(name, "new")}}


@contextmanager
def fake_github() -> Iterator[FakeGitHub]:
    made = FakeGitHub()
    with serving(made.answer) as made.url:
        yield made


@contextmanager
def fake_jira(cloud: bool = True) -> Iterator[FakeJira]:
    made = FakeJira(cloud=cloud)
    with serving(made.answer) as made.url:
        yield made
