"""Searching the web: where a model may look, what it found, and which of its sources it really saw."""

from urllib.parse import urlsplit

from anthropic.types.beta import BetaMessage, BetaWebSearchTool20250305Param

from protocol.messages import Source
from protocol.policy import Policy
from roles.minds.anthropic.outbox import Found


class Web:
    """The searches of one conversation, done by the API itself; one request does at most ``uses``."""

    def __init__(self, law: Policy, uses: int) -> None:
        self._law, self.uses = law, uses
        self._queries: list[str] = []
        self._seen: dict[str, str] = {}
        self._cited: dict[str, str] = {}

    def tool(self) -> BetaWebSearchTool20250305Param:
        """The API's own tool, bound to the law's domains."""
        return {
            "type": "web_search_20250305",
            "name": "web_search",
            "max_uses": self.uses,
            "allowed_domains": list(self._law.search_domains),
        }

    def take_in(self, message: BetaMessage) -> None:
        """Note queries, results and citations of one answer."""
        for block in message.content:
            if block.type == "server_tool_use" and block.name == "web_search":
                self._queries.append(str(block.input.get("query", "")))
            if block.type == "web_search_tool_result" and isinstance(block.content, list):
                self._seen |= {found.url: found.title for found in block.content}
            if block.type == "text":
                for citation in block.citations or []:
                    if citation.type == "web_search_result_location":
                        self._cited[citation.url] = citation.title or citation.url

    @property
    def queries(self) -> tuple[str, ...]:
        """What was searched for, in its order."""
        return tuple(dict.fromkeys(query for query in self._queries if query))

    def refusal(self, found: Found) -> str:
        """Why these sources cannot be reported; empty when they can."""
        for source in found.sources:
            if not self._is_allowed(source.locator):
                return f"{source.locator} is not in an allowed domain"
            if source.locator not in self._seen and source.locator not in self._cited:
                return f"no search of yours returned {source.locator}"
        return ""

    def sources(self, reported: tuple[Source, ...]) -> tuple[Source, ...]:
        """What was reported, and what was cited besides, with the titles that the search gave."""
        known = {**self._seen, **self._cited}
        urls = dict.fromkeys([*(source.locator for source in reported), *filter(self._is_allowed, self._cited)])
        titles = {source.locator: source.title for source in reported}
        return tuple(Source(title=known.get(url) or titles[url], locator=url) for url in urls)

    def _is_allowed(self, url: str) -> bool:
        host = urlsplit(url).hostname or ""
        return any(host == domain or host.endswith(f".{domain}") for domain in self._law.search_domains)
