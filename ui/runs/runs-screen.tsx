import { useEffect, useRef, useState } from "preact/hooks";
import type { PageRun } from "../../src/api/protocol/page-runs.ts";
import { clockText, countText } from "../flows/flow-text.ts";
import { go, run, runs, runsRefusal, session } from "../page-state.ts";
import { durationText, outcomeOf, runMs, stepSigns } from "./run-text.ts";
import { Traffic } from "./traffic.tsx";

/** Runs of vendorctl, newest first: the steps of one, and what it cost the traffic that was measured. */
export function RunsScreen() {
  const known = runs.value;
  const refusal = runsRefusal.value;
  if (!session.value?.runs) {
    return (
      <main class="empty">
        <p>
          Runs are shown by <code>vendorctl ui</code> and by the page of an embedded cluster. Elsewhere:{" "}
          <code>vendorctl history</code>.
        </p>
      </main>
    );
  }
  return (
    <main class="runs">
      {refusal && (
        <p class="problem" role="alert">
          {refusal.message}
        </p>
      )}
      {!known && !refusal && <p class="dim">Asking…</p>}
      {known?.length === 0 && (
        <p>
          No run yet: <code>vendorctl install</code>, <code>switch</code>, <code>upgrade</code> and <code>migrate</code>{" "}
          begin one.
        </p>
      )}
      {known && run.value && (
        <>
          <List known={known} chosen={run.value} />
          <Chosen chosen={run.value} />
          <Traffic traffic={run.value.traffic} isRunning={run.value.outcome === "running"} />
        </>
      )}
    </main>
  );
}

function List({ known, chosen }: { known: readonly PageRun[]; chosen: PageRun }) {
  const list = useRef<HTMLElement>(null);
  // By keys it may be one that is out of sight.
  useEffect(
    () => list.current?.querySelector(`[data-run="${CSS.escape(chosen.id)}"]`)?.scrollIntoView({ block: "nearest" }),
    [chosen.id],
  );
  return (
    <section class="run-list" aria-label="Runs" ref={list}>
      <ul>
        {known.map((one) => (
          <li key={one.id}>
            <button
              type="button"
              aria-current={one.id === chosen.id ? "true" : undefined}
              data-run={one.id}
              onClick={() => go({ run: one.id })}
            >
              <Outcome of={one} /> <b>{one.title || one.id}</b>
              <span class="dim">
                {whenText(one.startedAt)} · {durationText(runMs(one, Date.now()))}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Outcome({ of }: { of: PageRun }) {
  const { sign, word } = outcomeOf(of);
  return (
    <span class={`outcome ${of.isCutOff ? "stopped" : of.outcome}`}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}

function Chosen({ chosen }: { chosen: PageRun }) {
  const { id, title, command, why, steps, heading, next } = chosen;
  const done = steps.filter(({ state }) => state === "confirmed" || state === "skipped").length;
  const signs = stepSigns(chosen);
  return (
    <section class="run" aria-labelledby="run-title">
      <h2 id="run-title">{title || id}</h2>
      <p>
        <Outcome of={chosen} />
        {heading === "back" && chosen.outcome !== "rolled-back" && ", rolling back"} · {done} of{" "}
        {countText(steps.length, "step")} · <code>{id}</code>
      </p>
      {command && (
        <p class="dim">
          <code>{command}</code>
        </p>
      )}
      {why && (
        <p class="problem">
          {why.message} [<code>{why.code}</code>]
        </p>
      )}
      {next.map((text) => (
        <Next key={text} command={text} />
      ))}
      <ol class="steps" aria-label="Steps">
        {steps.map((step, at) => (
          <li key={step.id} data-step={step.id} data-state={step.state}>
            <span class="sign" aria-hidden="true">
              {signs[at]?.sign}
            </span>
            <span>
              {step.title} <span class="said">, {signs[at]?.word}</span>
            </span>
            <span class="dim number">{step.ms === undefined ? "" : durationText(step.ms)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

const COPIED_MS = 2_000;

/** The page changes nothing: a person types it. */
function Next({ command }: { command: string }) {
  const text = useRef<HTMLElement>(null);
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (said === "") return undefined;
    const timer = setTimeout(() => setSaid(""), COPIED_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    const isCopied = await navigator.clipboard?.writeText(command).then(
      () => true,
      () => false,
    );
    if (isCopied) return setSaid("Copied.");
    // Where the browser does not let the page write to the clipboard, it is chosen for the user to copy.
    if (text.current) getSelection()?.selectAllChildren(text.current);
    setSaid("Chosen: copy it.");
  };
  return (
    <p class="next">
      next: <code ref={text}>{command}</code>{" "}
      <button type="button" aria-label={`Copy ${command}`} onClick={() => void copy()}>
        Copy
      </button>{" "}
      <span class="dim" aria-live="polite">
        {said}
      </span>
    </p>
  );
}

/** The clock for runs of today, the day too for others. */
function whenText(at: string): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return "";
  const isToday = time.toDateString() === new Date().toDateString();
  const day = isToday ? "" : `${time.toLocaleDateString("en", { day: "numeric", month: "short" })}, `;
  return day + clockText(time.getTime());
}
