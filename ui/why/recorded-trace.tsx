import type { PolicyHit } from "../../src/api/protocol/flow.ts";
import { RuleButton } from "./rule-button.tsx";

const ACTIONS: Readonly<Record<PolicyHit["action"], string>> = {
  ...{ Allow: "allows it", Deny: "denies it", Pass: "passes it to the next tier", Log: "logs it" },
};

/** What policy was asked when the flow was counted, in order. */
export function RecordedTrace({ policies }: { policies: readonly PolicyHit[] }) {
  if (policies.length === 0) return <p class="dim">No policy was asked.</p>;
  return (
    <ol class="trace">
      {policies.map((hit, at) => (
        <li key={at} class={stepClass(hit)}>
          <RuleButton rule={hit} />
          <span>
            {hit.direction.toLowerCase()}
            {hit.tier && `, tier ${hit.tier}`}:{" "}
            {hit.staged ? `staged: would ${hit.action.toLowerCase()}` : ACTIONS[hit.action]}
          </span>
        </li>
      ))}
    </ol>
  );
}

function stepClass({ action, staged }: PolicyHit): string {
  if (staged) return "staged";
  return action === "Deny" ? "stop" : action === "Allow" ? "ok" : "pass";
}
