import type { PolicyHit } from "../../src/api/protocol/flow.ts";
import { stepText } from "../flows/flow-text.ts";
import { lightUp, search } from "../page-state.ts";
import { ruleQuery } from "../query/query-text.ts";

type NamedRule = Omit<PolicyHit, "action">;

/** A rule, or what decided in its place. Its flows light up in the table while it is looked at; it leads to those that passed it. */
export function RuleButton({ rule }: { rule: NamedRule }) {
  const text = stepText(rule);
  // An end of a tier, a profile, and a policy that the reader may not see have no query of their own.
  if (rule.name === "" || rule.rule === undefined) return <b>{text}</b>;
  const query = ruleQuery(rule);
  return (
    <button
      type="button"
      class="link"
      title={`Flows of ${query}`}
      onMouseEnter={() => lightUp(text)}
      onMouseLeave={() => lightUp("")}
      onFocus={() => lightUp(text)}
      onBlur={() => lightUp("")}
      onClick={() => search(query)}
    >
      {text}
    </button>
  );
}
