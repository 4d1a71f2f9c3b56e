import { useEffect, useRef, useState } from "preact/hooks";
import type { ChangedPair, FlowPreview, FlowPreviewStatus } from "../../src/api/protocol/flow-preview.ts";
import { type FlowsApi, isRefusal, postFlows } from "../api/flows-api.ts";
import { clockText, countText, endText, portText, stepText } from "../flows/flow-text.ts";
import { api, draft, go, isPreviewDue, query, search, url } from "../page-state.ts";
import { portQuery, timeTerms } from "../query/query-text.ts";
import { SidePanel } from "../side-panel.tsx";
import { deletedObject, type LineProblem, refusedLines, writtenObjects } from "./written-objects.ts";

interface Answered {
  /** What it answers. */
  to: string;
  status?: FlowPreviewStatus;
  problems: readonly LineProblem[];
}

/** What policies that are written here, or the deletion of one, would have done to the flows of the chosen time. */
export function PreviewPanel() {
  const [answered, setAnswered] = useState<Answered>();
  const [isAsking, setAsking] = useState(false);
  const asking = useRef(new AbortController());
  const text = draft.value;
  const { gone, isNarrow } = url.value;
  const asked = api.value;
  const flows = isNarrow ? query.value : timeTerms(query.value, Date.now());
  const to = JSON.stringify([asked, text, gone, isNarrow, isNarrow ? query.value : timeTerms(query.value, 0)]);
  const ask = async () => {
    asking.current.abort();
    asking.current = new AbortController();
    const { signal } = asking.current;
    if (!asked) return;
    setAsking(true);
    const answer = await answerTo(asked, { text, gone, flows }, signal);
    if (signal.aborted) return;
    setAsking(false);
    setAnswered({ to, ...answer });
  };
  useEffect(() => () => asking.current.abort(), []);
  const isDue = isPreviewDue.value;
  // A link only fills the panel: a preview is asked for by a button.
  useEffect(() => {
    if (!isDue || !asked) return;
    isPreviewDue.value = false;
    void ask();
  }, [isDue, asked]);
  const deleted = deletedObject(gone);
  return (
    <SidePanel label="Preview" isWide close={() => go({ panel: "none", gone: "" })}>
      <h2>Before you enforce</h2>
      <p class="dim">Nothing is changed by asking. It takes the right to make the change.</p>
      {deleted && (
        <p>
          Deleted: {deleted.kind} <b>{endText({ namespace: deleted.namespace ?? "", name: deleted.name })}</b>{" "}
          <button type="button" onClick={() => go({ gone: "" })}>
            Keep it
          </button>
        </p>
      )}
      <label for="preview-text">{deleted ? "With these policies in its place" : "Policies, as YAML"}</label>
      <textarea
        id="preview-text"
        class="mono"
        rows={deleted && text === "" ? 4 : 14}
        spellcheck={false}
        autocomplete="off"
        aria-describedby="preview-problems"
        value={text}
        onInput={(event) => {
          draft.value = event.currentTarget.value;
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void ask();
        }}
      />
      <div class="choice-line">
        <button type="button" class="go" onClick={() => void ask()}>
          Preview
        </button>
        <kbd>Ctrl Enter</kbd>
        <label>
          <input
            type="checkbox"
            checked={isNarrow}
            onChange={(event) => go({ isNarrow: event.currentTarget.checked })}
          />{" "}
          flows of the query alone
        </label>
      </div>
      <div id="preview-problems" aria-live="polite">
        {isAsking && <p class="dim">Calculating…</p>}
        {!isAsking && answered && answered.to !== to && <p class="note">note: this is of what was asked before</p>}
        {!isAsking && answered && answered.problems.length > 0 && <Problems problems={answered.problems} />}
      </div>
      {!isAsking && answered?.status && <Changes status={answered.status} />}
    </SidePanel>
  );
}

async function answerTo(
  asked: FlowsApi,
  { text, gone, flows }: { text: string; gone: string; flows: string },
  signal: AbortSignal,
): Promise<Omit<Answered, "to">> {
  const written = writtenObjects(text);
  if (written.problems.length > 0) return { problems: written.problems };
  const deleted = deletedObject(gone);
  if (written.found.length === 0 && !deleted) return { problems: [{ message: "There is no policy in this text." }] };
  const spec = {
    ...(flows === "" ? {} : { query: flows }),
    objects: written.found.map(({ object }) => object),
    delete: deleted ? [deleted] : [],
  };
  const preview = { apiVersion: "flows.vendor.io/v1", kind: "FlowPreview", spec };
  try {
    const { status } = await postFlows<FlowPreview>(asked, "previews", preview, signal);
    return { status, problems: [] };
  } catch (error) {
    return { problems: isRefusal(error) ? refusedLines(written, error) : [{ message: String(error) }] };
  }
}

function Problems({ problems }: { problems: readonly LineProblem[] }) {
  return (
    <ul class="problem misses">
      {problems.map(({ line, message }) => (
        <li key={`${line} ${message}`}>
          {line !== undefined && (
            <button type="button" class="link" onClick={() => selectLine(line)}>
              line {line}
            </button>
          )}{" "}
          {message}
        </li>
      ))}
    </ul>
  );
}

function selectLine(line: number): void {
  const field = document.getElementById("preview-text") as HTMLTextAreaElement;
  const lines = field.value.split("\n");
  const from = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  field.focus();
  field.setSelectionRange(from, from + (lines[line - 1] ?? "").length);
  field.scrollTop = ((line - 2) * field.scrollHeight) / lines.length;
}

function Changes({ status }: { status: FlowPreviewStatus }) {
  const { changed, same, unknown, notes, pairs, since, until } = status;
  const denied = changed.filter(({ then }) => then === "Deny");
  const allowed = changed.filter(({ then }) => then === "Allow");
  return (
    <>
      <output>
        {changed.length === 0 ? "Nothing would change" : `${changed.length.toLocaleString("en")} would change`} in{" "}
        {countText(pairs, "pair")} of ends and ports, from {clockText(since)} to {clockText(until)}.{" "}
        {same.toLocaleString("en")} stay as they are.
      </output>
      {denied.length > 0 && <Rows title="⊘ Newly denied" rows={denied} />}
      {allowed.length > 0 && <Rows title="→ Newly allowed" rows={allowed} />}
      {unknown.length > 0 && (
        <section>
          <h3>Not known</h3>
          <ul class="misses">
            {unknown.map(({ reason, pairs: count }) => (
              <li key={reason}>
                {countText(count, "pair")}: {reason}
              </li>
            ))}
          </ul>
        </section>
      )}
      {notes.map((note) => (
        <p key={note} class="note">
          note: {note}
        </p>
      ))}
    </>
  );
}

/** Rows that are more are no reading. */
const MOST_ROWS = 200;

function Rows({ title, rows }: { title: string; rows: readonly ChangedPair[] }) {
  return (
    <section>
      <h3>
        {title}: {countText(rows.length, "pair")}
      </h3>
      <div class="wide-table" tabIndex={0} role="region" aria-label={title}>
        <table>
          <thead>
            <tr>
              <th scope="col">from</th>
              <th scope="col">to</th>
              <th scope="col">port</th>
              <th scope="col" class="number">
                connections
              </th>
              <th scope="col">decided by</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, MOST_ROWS).map((row) => (
              <Row key={portQuery(row)} row={row} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > MOST_ROWS && <p class="note">note: {rows.length - MOST_ROWS} more; narrow the query</p>}
    </section>
  );
}

function Row({ row }: { row: ChangedPair }) {
  const { from, to, connections, decidedBy, thenBy } = row;
  const hit = thenBy ?? decidedBy;
  const wanted = portQuery(row);
  return (
    <tr>
      <th scope="row">
        <button type="button" class="link" title={`Flows of ${wanted}`} onClick={() => search(wanted)}>
          {endText(from)}
        </button>
      </th>
      <td>{endText(to)}</td>
      <td class="mono">{portText(row)}</td>
      <td class="number">{connections.toLocaleString("en")}</td>
      <td>{hit ? stepText(hit) : "–"}</td>
    </tr>
  );
}
