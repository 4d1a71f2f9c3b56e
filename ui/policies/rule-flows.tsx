import { useEffect, useState } from "preact/hooks";
import type { FlowList } from "../api/flow.ts";
import { askFlows } from "../api/flows-api.ts";
import { countText, endText, portText } from "../flows/flow-text.ts";
import { api } from "../page-state.ts";
import type { RuleRow } from "./rule-rows.ts";

/** A pointer that only passes asks nothing. */
const STAYS_MS = 200;
const MOST_FLOWS = 4;

/** The newest flows of the rule that is looked at, below the table. */
export function RuleFlows({ row }: { row: RuleRow | undefined }) {
  const [answered, setAnswered] = useState<{ query: string; list: FlowList }>();
  const asked = api.value;
  const query = row?.query ?? "";
  useEffect(() => {
    if (!asked || query === "") return undefined;
    const left = new AbortController();
    const ask = async () => {
      const parameters = { query, limit: MOST_FLOWS };
      const list = await askFlows<FlowList>(asked, "flows", parameters, left.signal).catch(() => undefined);
      if (list && !left.signal.aborted) setAnswered({ query, list });
    };
    const timer = setTimeout(() => void ask(), STAYS_MS);
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [asked, query]);
  if (!row) return <p class="legend dim">Look at a rule to see its flows; Enter leads to all of them.</p>;
  const list = answered?.query === query ? answered.list : undefined;
  return (
    <p class="legend rule-flows">
      <span class="dim">
        {list ? countText(list.metadata.totals.flows, "flow") : "flows"} of <code>{query}</code>
      </span>
      {list?.items.map((flow) => (
        <span key={flow.metadata.name} class={flow.verdict === "Deny" ? "bad" : undefined}>
          {flow.verdict === "Deny" ? "⊘" : "→"} {endText(flow.from)} to {endText(flow.to)} {portText(flow)}
        </span>
      ))}
    </p>
  );
}
