import { useComputed, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { choose, explain, lit, look, shown, sortBy, steppedTo, url } from "../page-state.ts";
import type { ColumnSort, FlowRow } from "../worker/flow-columns.ts";
import { bytesText, clockText } from "./flow-text.ts";

/** As in the style sheet. */
const ROW_PX = 28;
const NUMBERS = new Intl.NumberFormat("en");
/** Rows above and below those that are seen, so that scrolling shows no gaps. */
const SPARE = 4;

const COLUMNS: readonly { sort: ColumnSort; title: string; isNumber?: boolean }[] = [
  { sort: "when", title: "when" },
  { sort: "verdict", title: "verdict" },
  { sort: "from", title: "from" },
  { sort: "to", title: "to" },
  { sort: "port", title: "port" },
  { sort: "decided", title: "decided by" },
  { sort: "bytes", title: "bytes", isNumber: true },
  { sort: "connections", title: "connections", isNumber: true },
  { sort: "plane", title: "plane" },
];

/** The table: as many rows in the document as are seen, of as many as there are. */
export function FlowGrid() {
  const scroller = useRef<HTMLDivElement>(null);
  const total = useComputed(() => shown.value.total);
  const lookAgain = () => {
    const { scrollTop, clientHeight } = scroller.current as HTMLDivElement;
    const first = Math.max(0, Math.floor(scrollTop / ROW_PX) - SPARE);
    look(first, first + Math.ceil(clientHeight / ROW_PX) + 2 * SPARE);
  };
  useLayoutEffect(() => {
    lookAgain();
    const resized = new ResizeObserver(lookAgain);
    resized.observe(scroller.current as HTMLDivElement);
    return () => resized.disconnect();
  }, []);
  useSignalEffect(() => {
    if (steppedTo.value >= 0 && scroller.current) showRow(scroller.current, steppedTo.value);
  });
  const { rows, from } = shown.value;
  const { flow: chosen } = url.value;
  const looked = lit.value;
  return (
    <div
      class="grid"
      role="grid"
      aria-label="Flows"
      aria-rowcount={total.value + 1}
      aria-colcount={COLUMNS.length}
      aria-activedescendant={rows.some(({ id }) => id === chosen) ? `flow-${chosen}` : undefined}
      tabIndex={0}
      ref={scroller}
      onScroll={lookAgain}
    >
      <div class="head" role="rowgroup">
        <div class="row" role="row" aria-rowindex={1}>
          {COLUMNS.map((column) => (
            <Header key={column.sort} {...column} />
          ))}
        </div>
      </div>
      <div class="rows" role="rowgroup" style={{ height: `${total.value * ROW_PX}px` }}>
        {rows.map((row, at) =>
          rowElement(row, at, from + at, {
            isChosen: row.id === chosen,
            isLit: looked !== "" && row.decidedBy === looked,
          }),
        )}
      </div>
    </div>
  );
}

function Header({ sort, title, isNumber }: (typeof COLUMNS)[number]) {
  const { sort: sorted, isDescending } = url.value;
  const direction = sorted === sort ? (isDescending ? "descending" : "ascending") : undefined;
  return (
    <div role="columnheader" class={isNumber ? "number" : undefined} aria-sort={direction}>
      <button type="button" onClick={() => sortBy(sort)}>
        {title}
        <span aria-hidden="true">{direction && (isDescending ? " ↓" : " ↑")}</span>
      </button>
    </div>
  );
}

/** Plain functions, and elements that are used again: a jump changes texts and builds nothing. */
function rowElement(
  row: FlowRow,
  place: number,
  position: number,
  { isChosen, isLit }: { isChosen: boolean; isLit: boolean },
) {
  return (
    <div
      key={place}
      id={`flow-${row.id}`}
      class={`row${row.isDenied ? " denied" : ""}${isLit ? " lit" : ""}`}
      role="row"
      aria-rowindex={position + 2}
      aria-selected={isChosen}
      tabIndex={-1}
      style={{ transform: `translateY(${position * ROW_PX}px)` }}
      onClick={() => choose(row.id)}
      onDblClick={() => explain(row.id)}
    >
      {cell("mono", clockText(row.lastSeen))}
      {cell("verdict", row.isDenied ? "⊘ deny" : "→ allow")}
      {cell("", row.from)}
      {cell("", row.to)}
      {cell("mono", row.port)}
      {cell("dim", row.decidedBy || "–")}
      {cell("number", bytesText(row.bytes))}
      {cell("number", NUMBERS.format(row.connections))}
      {cell("dim", row.plane)}
    </div>
  );
}

function cell(className: string, text: string) {
  return (
    <span role="gridcell" class={className} title={text.length > 16 ? text : undefined}>
      {text}
    </span>
  );
}

function showRow(scroller: HTMLDivElement, position: number): void {
  const head = ROW_PX;
  const top = position * ROW_PX;
  if (top < scroller.scrollTop) scroller.scrollTop = top;
  else if (top + ROW_PX + head > scroller.scrollTop + scroller.clientHeight)
    scroller.scrollTop = top + ROW_PX + head - scroller.clientHeight;
}
