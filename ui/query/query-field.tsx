import { useSignalEffect } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { completions, type QueryCompletions } from "../../src/flows/query/completions.ts";
import type { FlowHints } from "../api/flow.ts";
import { askFlows } from "../api/flows-api.ts";
import { api, query, search } from "../page-state.ts";
import { problemIn, quoted, type UnreadableQuery } from "./query-text.ts";

type Choice = QueryCompletions["choices"][number];

interface Offered {
  from: number;
  to: number;
  choices: readonly Choice[];
}

const NONE: Offered = { from: 0, to: 0, choices: [] };
const MOST_CHOICES = 10;
const LIST_ID = "query-choices";

/** The query, with what may stand at the cursor below it, or why it cannot be read. */
export function QueryField() {
  const input = useRef<HTMLInputElement>(null);
  const asking = useRef(new AbortController());
  const [offered, setOffered] = useState(NONE);
  const [active, setActive] = useState(-1);
  const [problem, setProblem] = useState<UnreadableQuery & { text: string }>();

  const close = () => {
    asking.current.abort();
    setOffered(NONE);
    setActive(-1);
  };
  useSignalEffect(() => {
    const field = input.current as HTMLInputElement;
    field.value = query.value;
    const found = problemIn(query.value);
    setProblem(found && { ...found, text: query.value });
    close();
  });
  const offer = async () => {
    close();
    const field = input.current as HTMLInputElement;
    const { hints, ...fixed } = completions(field.value, field.selectionStart ?? field.value.length);
    if (fixed.choices.length > 0) return setOffered({ ...fixed, choices: fixed.choices.slice(0, MOST_CHOICES) });
    if (!hints || !api.value) return undefined;
    asking.current = new AbortController();
    const { signal } = asking.current;
    const parameters = { ...hints, limit: MOST_CHOICES };
    const answer = await askFlows<FlowHints>(api.value, "hints", parameters, signal).catch(() => ({ hints: [] }));
    const choices = answer.hints.map(({ value }) => ({ text: quoted(value), about: "" }));
    if (!signal.aborted) setOffered({ ...fixed, choices });
  };
  const take = ({ text }: Choice) => {
    const field = input.current as HTMLInputElement;
    const isField = text.endsWith(":");
    field.setRangeText(isField ? text : `${text} `, offered.from, offered.to, "end");
    field.focus();
    if (isField) void offer();
    else close();
  };
  const submit = () => {
    const field = input.current as HTMLInputElement;
    close();
    const found = problemIn(field.value);
    setProblem(found && { ...found, text: field.value });
    if (!found) {
      field.blur();
      return search(field.value);
    }
    const { position, length } = found.problem;
    field.setSelectionRange(position, position + length);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const choice = offered.choices[active];
    const count = offered.choices.length;
    if (event.key === "Enter") {
      event.preventDefault();
      if (choice) take(choice);
      else submit();
    } else if (event.key === "Tab" && choice) {
      event.preventDefault();
      take(choice);
    } else if (event.key === "ArrowDown" && count === 0) {
      void offer();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && count > 0) {
      event.preventDefault();
      const next = event.key === "ArrowDown" ? active + 1 : Math.max(active, 0) + count - 1;
      setActive(next % count);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (count > 0) close();
      else input.current?.blur();
    }
  };
  return (
    <search class="query">
      <div class="line">
        <kbd>/</kbd>
        <input
          ref={input}
          id="query"
          type="text"
          role="combobox"
          aria-label="Query"
          aria-autocomplete="list"
          aria-expanded={offered.choices.length > 0}
          aria-controls={LIST_ID}
          aria-activedescendant={active >= 0 ? `${LIST_ID}-${active}` : undefined}
          aria-invalid={problem !== undefined}
          aria-describedby="query-problem"
          placeholder="from:shop/* to:pay/api port:5432 verdict:deny since:15m"
          autocomplete="off"
          spellcheck={false}
          onInput={() => void offer()}
          onKeyDown={onKeyDown}
          onBlur={close}
        />
        {query.value !== "" && (
          <button type="button" class="plain" aria-label="Remove the query" onClick={() => search("")}>
            ×
          </button>
        )}
      </div>
      <div id={LIST_ID} class="choices" role="listbox" aria-label="Completions" hidden={offered.choices.length === 0}>
        {offered.choices.map((choice, at) => (
          <div
            key={choice.text}
            id={`${LIST_ID}-${at}`}
            role="option"
            aria-selected={at === active}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => take(choice)}
          >
            <span class="mono">{choice.text}</span> <span class="dim">{choice.about}</span>
          </div>
        ))}
      </div>
      <p id="query-problem" class="problem" aria-live="polite">
        {problem && <Problem {...problem} />}
      </p>
    </search>
  );
}

function Problem({ text, message, problem: { position, length } }: UnreadableQuery & { text: string }) {
  return (
    <>
      <code>
        {text.slice(0, position)}
        <mark class="caret">{text.slice(position, position + length) || " "}</mark>
        {text.slice(position + length)}
      </code>{" "}
      {message}
    </>
  );
}
