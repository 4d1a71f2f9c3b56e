import { useEffect, useState } from "preact/hooks";
import { api, explainDenial, go, isPaused, pause, search, session, shown } from "../page-state.ts";
import { emptyReason, type WithoutTerm, whatHelps } from "./empty-reason.ts";
import { FlowGrid } from "./flow-grid.tsx";
import { countText } from "./flow-text.ts";
import { notesOf } from "./notes.ts";

/** The live table, and above it what it does not show. */
export function FlowsScreen() {
  const { total, phase } = shown.value;
  return (
    <main class="flows">
      <StatusLine />
      {total === 0 ? <EmptyPage key={`${phase}${shown.value.query}`} /> : <FlowGrid />}
    </main>
  );
}

export function StatusLine() {
  const { total, waiting, denials, isCut, coverage, refusal, phase } = shown.value;
  const notes = coverage ? notesOf(coverage) : [];
  return (
    <div class="status">
      <output>
        {countText(total, "flow")}
        {isCut && ", and more that are not kept here: narrow the query"}
      </output>
      <button type="button" aria-pressed={isPaused.value} onClick={pause}>
        {isPaused.value ? `Go on${waiting > 0 ? `: ${waiting.toLocaleString("en")} waiting` : ""}` : "Pause"}
      </button>
      <button type="button" onClick={() => go({ panel: "propose" })}>
        Propose
      </button>
      <button type="button" onClick={() => go({ panel: "preview" })}>
        Preview
      </button>
      <span class="chips" aria-live="polite">
        {denials > 0 && session.value?.notifications !== false && (
          <button type="button" class="alarm" onClick={explainDenial}>
            {countText(denials, "new denial")}: why?
          </button>
        )}
      </span>
      {refusal && phase !== "refused" && <span class="problem">{refusal.message} Trying again.</span>}
      {notes.length > 0 && <span class="note">note: {notes.join("; ")}</span>}
    </div>
  );
}

function EmptyPage() {
  const [helps, setHelps] = useState<WithoutTerm[]>();
  const { phase, query, refusal } = shown.value;
  const asked = api.value;
  useEffect(() => {
    if (!asked || phase !== "live") return undefined;
    const left = new AbortController();
    void whatHelps(asked, query, left.signal).then((found) => left.signal.aborted || setHelps(found));
    return () => left.abort();
  }, [asked, phase, query]);
  const reason = emptyReason({ phase, query, ...(refusal && { refusal }) }, helps, asked?.namespace ?? "");
  return (
    <section class="empty" aria-live="polite">
      <p>{reason.sentence}</p>
      <div class="actions">
        {reason.offers.map(({ label, query: text }) => (
          <button type="button" key={label} onClick={() => search(text)}>
            {label}
          </button>
        ))}
      </div>
    </section>
  );
}
