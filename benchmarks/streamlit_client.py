"""A tab without a browser: it speaks Streamlit's own protocol over its WebSocket, as the page's script does.

    async with Tab(url) as tab:
        await tab.open("room", "room=ABCDEFGH")
        await tab.click("room_step")
        tab.html                    what `st.html` drew, all together

A rerun is answered when the server says that the script has finished. Fragments with a clock of their own are rerun by
the client, as a browser does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NumberInput_pb2 import NumberInput
from streamlit.proto.WidgetStates_pb2 import WidgetState

SECONDS_OF_PATIENCE = 60.0


@dataclass(frozen=True)
class Drawn:
    element: Element
    run: int
    fragment: str


class Tab:
    def __init__(self, url: str) -> None:
        self.url = url
        self.num_bytes = 0
        self.fragment_seconds: list[float] = []
        self.addresses: list[str] = []
        """The values in the address, each time that the server wrote them."""
        self._host = url.split("://", 1)[1]
        self._page_hash = ""
        self._query = ""
        self._drawn: dict[tuple[int, ...], Drawn] = {}
        self._run = 0
        self._values: dict[str, WidgetState] = {}
        self._finished = asyncio.Event()
        self._clocks: dict[str, asyncio.Task[None]] = {}
        self._sent_fragments: dict[str, float] = {}

    async def __aenter__(self) -> Tab:
        self._socket = await websockets.connect(
            f"ws://{self._host}/_stcore/stream",
            subprotocols=[websockets.Subprotocol("streamlit")],
            origin=websockets.Origin(self.url),
            max_size=None,
        )
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_clocks()
        self._reader.cancel()
        await self._socket.close()

    # -- what a reader does --

    async def open(self, page: str, query: str = "") -> float:
        """Go to a page. Returns the seconds until its script has finished."""
        self._query = query
        self._page_hash = ""
        self._values.clear()
        return await self._rerun(page_name=page)

    async def step_through_history(self, query: str) -> float:
        """Back or Forward to other values of this page. The browser sends no control's state with it."""
        self._query = query
        self._values.clear()
        return await self._rerun(by_history=True)

    def be_late(self, query: str) -> None:
        """As a browser whose address still has these values, because it has not heard of the last ones."""
        self._query = query

    async def click(self, key: str) -> float:
        """Press the button of this key or label. Seconds until the answer."""
        return await self._rerun(WidgetState(id=self._button(key), trigger_value=True))

    def fill(self, key: str, value: str | int) -> None:
        """Put a value into a text box, number box, slider or radio; it is sent with the next click."""
        found = [(kind, widget) for kind, widget in self._widgets() if widget.id.endswith(f"-{key}")]
        if len(found) != 1:
            raise LookupError(f"{len(found)} controls are called {key}; the page shows {self.headings}")
        [(kind, widget)] = found
        state = self._values[widget.id] = WidgetState(id=widget.id)
        if kind in ("text_input", "text_area"):
            state.string_value = str(value)
        elif kind == "radio":
            state.string_value = widget.options[int(value)]
        elif kind == "number_input" and widget.data_type == NumberInput.INT:
            state.int_value = int(value)
        elif kind == "number_input":
            state.double_value = float(value)
        else:
            state.double_array_value.data.append(float(value))

    async def enter(self, key: str, value: str | int) -> float:
        """Put a value into a control that answers at once. Seconds until the answer."""
        self.fill(key, value)
        return await self._rerun()

    async def tell(self, key: str, event: str, value: Any) -> float:
        """What a component's script says by itself (`setTriggerValue`). Seconds until the answer."""
        [component] = [drawn.id for drawn in self._components(key)]
        trigger = f"$$STREAMLIT_INTERNAL_KEY_{component}__events"
        message = json.dumps([{"event": event, "value": value}])
        return await self._rerun(WidgetState(id=trigger, json_trigger_value=message))

    # -- what a reader sees --

    @property
    def html(self) -> str:
        return "\n".join(element.html.body for element in self._elements("html"))

    @property
    def headings(self) -> list[str]:
        return [element.heading.body for element in self._elements("heading")]

    @property
    def code(self) -> str:
        return "\n".join(element.code.code_text for element in self._elements("code"))

    def component(self, key: str) -> Any:
        """The data of a component."""
        [data] = [drawn.json for drawn in self._components(key)]
        return json.loads(data)

    @property
    def query(self) -> str:
        """The values in the address, as the server last wrote them."""
        return self._query

    def keys(self, kind: str) -> list[str]:
        """The keys of all controls of a kind that are on the page."""
        return [widget.id.split("-", 2)[2] for of_kind, widget in self._widgets() if of_kind == kind]

    # -- the protocol --

    async def _rerun(self, *states: WidgetState, page_name: str = "", by_history: bool = False) -> float:
        self._stop_clocks()  # a full run asks for those it wants anew
        self._finished.clear()
        began = time.perf_counter()
        await self._send(states, page_name=page_name, by_history=by_history)
        await asyncio.wait_for(self._finished.wait(), SECONDS_OF_PATIENCE)
        return time.perf_counter() - began

    async def _send(
        self, states: tuple[WidgetState, ...] = (), *, page_name: str = "", fragment: str = "", by_history: bool = False
    ) -> None:
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_script_hash, state.page_name = self._query, self._page_hash, page_name
        state.widget_states.widgets.extend([*self._values.values(), *states])
        state.fragment_id, state.is_auto_rerun, state.is_history_navigation = fragment, bool(fragment), by_history
        state.context_info.url = self.url
        with contextlib.suppress(websockets.ConnectionClosed):
            await self._socket.send(message.SerializeToString())

    async def _read(self) -> None:
        with contextlib.suppress(websockets.ConnectionClosed):
            async for data in self._socket:
                assert isinstance(data, bytes)
                self.num_bytes += len(data)
                message = ForwardMsg()
                message.ParseFromString(data)
                self._take(message)

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._run += 1
        elif kind == "navigation":
            self._page_hash = message.navigation.page_script_hash
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            path = tuple(message.metadata.delta_path)
            self._drawn[path] = Drawn(message.delta.new_element, self._run, message.delta.fragment_id)
        elif kind == "page_info_changed":
            self._query = message.page_info_changed.query_string
            self.addresses.append(self._query)
        elif kind == "auto_rerun":
            self._start_clock(message.auto_rerun.fragment_id, message.auto_rerun.interval)
        elif kind == "script_finished":
            self._finish(message.script_finished)

    def _finish(self, status: int) -> None:
        if status == ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY:
            for began in self._sent_fragments.values():
                self.fragment_seconds.append(time.perf_counter() - began)
            self._sent_fragments.clear()
        elif status == ForwardMsg.FINISHED_SUCCESSFULLY:
            self._drawn = {path: drawn for path, drawn in self._drawn.items() if drawn.run == self._run}
            self._finished.set()

    def _start_clock(self, fragment: str, interval: float) -> None:
        if fragment not in self._clocks:
            self._clocks[fragment] = asyncio.create_task(self._tick(fragment, interval))

    def _stop_clocks(self) -> None:
        for clock in self._clocks.values():
            clock.cancel()
        self._clocks.clear()

    async def _tick(self, fragment: str, interval: float) -> None:
        while True:
            await asyncio.sleep(interval)
            self._sent_fragments[fragment] = time.perf_counter()
            await self._send(fragment=fragment)

    def _elements(self, kind: str) -> Iterator[Element]:
        return (drawn.element for drawn in self._drawn.values() if drawn.element.WhichOneof("type") == kind)

    def _components(self, key: str) -> list[Any]:
        drawn = (element.bidi_component for element in self._elements("bidi_component"))
        return [component for component in drawn if component.id.endswith(f"-{key}")]

    def _widgets(self) -> Iterator[tuple[str, Any]]:
        for kind in ("text_input", "text_area", "number_input", "slider", "radio"):
            yield from ((kind, getattr(element, kind)) for element in self._elements(kind))

    def _button(self, key: str) -> str:
        buttons = [element.button for element in self._elements("button")]
        [found] = [button.id for button in buttons if button.id.endswith(f"-{key}") or button.label == key]
        return str(found)
