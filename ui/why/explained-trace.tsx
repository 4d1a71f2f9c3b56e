import type {
  ExplainedEnd,
  ExplainedStep,
  FlowExplanation,
  RuleReference,
} from "../../src/api/protocol/flow-explanation.ts";
import { endText, stepText } from "../flows/flow-text.ts";
import { RuleButton } from "./rule-button.tsx";

/** Tier by tier, what policy does with the flow now, at each end. */
export function ExplainedTrace({ explanation: { ends, nearMisses, notes } }: { explanation: FlowExplanation }) {
  return (
    <>
      {ends.map((end) => (
        <End key={end.direction} end={end} />
      ))}
      {nearMisses.length > 0 && (
        <section>
          <h3>Nearly</h3>
          <ul class="misses">
            {nearMisses.map(({ rule, text, criteria }) => (
              <li key={text}>
                {text}
                <Excerpt rule={rule} remark={criteria.length === 1 ? criteria[0]?.found : undefined} isDenied />
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

export function Remedies({ explanation: { remedies } }: { explanation: FlowExplanation }) {
  if (remedies.length === 0) return null;
  return (
    <section>
      <h3>What would allow it</h3>
      <ul class="misses">
        {remedies.map(({ text, yaml }) => (
          <li key={text}>
            {text}
            {yaml && <pre>{yaml.trimEnd()}</pre>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function End({ end }: { end: ExplainedEnd }) {
  const place = [end.pod, end.node].filter(Boolean).join(" on ");
  return (
    <section>
      <h3>
        {end.direction} {place && <small>{place}</small>}
      </h3>
      {end.unknown && <p class="dim">{end.unknown}</p>}
      <ol class="trace">
        {end.steps.map((step) => (
          <Step key={`${step.of} ${step.tier}`} step={step} />
        ))}
      </ol>
    </section>
  );
}

function Step({ step }: { step: ExplainedStep }) {
  const asked = step.policies.map(endText).join(", ");
  const isDenied = step.result === "Deny";
  return (
    <li class={isDenied ? "stop" : step.result === "Allow" ? "ok" : "pass"}>
      <b>{step.tier === "" ? "profiles" : `tier ${step.tier}`}</b>
      <span>{step.text}</span>
      {(asked || step.hidden) && (
        <span class="dim">
          asked: {asked}
          {step.hidden && `${asked ? ", and " : ""}policies that you may not read`}
        </span>
      )}
      {step.rule && step.rule.name !== "" && <RuleButton rule={step.rule} />}
      {step.rule && <Excerpt rule={step.rule} isDenied={isDenied} />}
    </li>
  );
}

/** The rule's lines, numbered as `kubectl get -o yaml` prints them; the first one is marked. */
function Excerpt({ rule, remark, isDenied }: { rule: RuleReference; remark?: string | undefined; isDenied: boolean }) {
  if (!rule.yaml) return null;
  const lines = rule.yaml.trimEnd().split("\n");
  const [first, ...rest] = lines.map((text, at) => `${rule.line === undefined ? "" : `${rule.line + at}  `}${text}\n`);
  return (
    <pre tabIndex={0} title={stepText(rule)}>
      <mark class={isDenied ? "bad" : "good"}>{first}</mark>
      {rest.join("")}
      {remark && <i># this is {remark}</i>}
    </pre>
  );
}
