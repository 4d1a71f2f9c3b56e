import { useEffect, useState } from "preact/hooks";
import type { FlowExplanation } from "../../src/api/protocol/flow-explanation.ts";
import type { Flow } from "../api/flow.ts";
import { type ApiRefusal, askFlows, isRefusal } from "../api/flows-api.ts";
import { CopyButton } from "../copy-button.tsx";
import { bytesText, clockText, decidedBy, endText, planeText, portText } from "../flows/flow-text.ts";
import { api, go, search, url } from "../page-state.ts";
import { keyQuery, pairQuery } from "../query/query-text.ts";
import { SidePanel } from "../side-panel.tsx";
import { ExplainedTrace, Remedies } from "./explained-trace.tsx";
import { RecordedTrace } from "./recorded-trace.tsx";

interface Answered {
  id: string;
  flow?: Flow;
  /** Absent: policy could not be asked, and the page shows what was recorded. */
  explanation?: FlowExplanation;
  refusal?: ApiRefusal;
}

/** Why the chosen flow was allowed or denied. */
export function WhyDrawer() {
  const [answered, setAnswered] = useState<Answered>();
  const asked = api.value;
  const id = url.value.flow;
  useEffect(() => {
    if (!asked) return undefined;
    const left = new AbortController();
    void answerFor(id, left.signal).then((answer) => left.signal.aborted || setAnswered(answer));
    return () => left.abort();
  }, [asked, id]);
  const current = answered?.id === id ? answered : undefined;
  return (
    <SidePanel label="Why" close={() => go({ isExplained: false })}>
      {!current && <p class="dim">Asking…</p>}
      {current?.refusal && <Refused {...current.refusal} />}
      {current?.flow && <Explained flow={current.flow} explanation={current.explanation} />}
    </SidePanel>
  );
}

async function answerFor(id: string, signal: AbortSignal): Promise<Answered> {
  const asked = api.value;
  if (!asked) return { id };
  const path = `flows/${encodeURIComponent(id)}`;
  try {
    const [flow, explanation] = await Promise.all([
      askFlows<Flow>(asked, path, {}, signal),
      // An older vendor-flow-logs explains nothing: the trace of the flow is shown.
      askFlows<FlowExplanation>(asked, `${path}/explain`, {}, signal).catch(() => undefined),
    ]);
    return { id, flow, ...(explanation && { explanation }) };
  } catch (error) {
    return isRefusal(error) ? { id, refusal: error } : { id };
  }
}

function Refused({ status, message }: ApiRefusal) {
  return (
    <>
      <h2>{status === 404 ? "This flow is no longer known" : "No answer"}</h2>
      <p>{status === 404 ? "Flows are kept for an hour, in memory. Or it is one that you may not see." : message}</p>
    </>
  );
}

function Explained({ flow, explanation }: { flow: Flow; explanation: FlowExplanation | undefined }) {
  const isDenied = flow.verdict === "Deny";
  return (
    <>
      <h2 class={isDenied ? "bad" : undefined}>
        {isDenied ? "⊘ Denied" : "→ Allowed"}: {endText(flow.from)} <small>to</small> {endText(flow.to)}{" "}
        <span class="mono">{portText(flow)}</span>
      </h2>
      <p>{explanation ? explanation.sentence : recordedSentence(flow)}</p>
      {explanation?.pending && (
        <p class={explanation.pending.verdict === flow.verdict ? "dim" : "changed"}>{explanation.pending.text}</p>
      )}
      {explanation?.changed && (
        <p class="changed">
          Policy has changed since:{" "}
          {explanation.now
            ? `now it is ${explanation.now.verdict === "Deny" ? "denied" : "allowed"}.`
            : "what it does now is not known."}
        </p>
      )}
      {explanation && <ExplainedTrace explanation={explanation} />}
      {isRecordShown(explanation) && (
        <section>
          {explanation && <h3>As it was counted</h3>}
          <RecordedTrace policies={flow.policies} />
        </section>
      )}
      {explanation && <Remedies explanation={explanation} />}
      <Facts flow={flow} />
      <Actions flow={flow} />
    </>
  );
}

/** Where what policy does now is not known, or is not what it did. */
function isRecordShown(explanation: FlowExplanation | undefined): boolean {
  return !explanation || explanation.changed || !explanation.ends.some(({ steps }) => steps.length > 0);
}

function recordedSentence(flow: Flow): string {
  const by = decidedBy(flow);
  if (flow.verdict === "Allow") return by ? `Allowed by ${by}.` : "Allowed: no policy was asked.";
  const reason = flow.reason && flow.reason !== by ? ` (${flow.reason})` : "";
  return by ? `Denied by ${by}${reason}.` : "Denied.";
}

function Facts({ flow }: { flow: Flow }) {
  const more = flow.moreAddresses ? ", …" : "";
  const addresses = (list: readonly string[]) => (list.length > 0 ? list.join(", ") + more : "not known");
  const { service } = flow;
  return (
    <dl>
      <dt>counted at</dt>
      <dd>
        {flow.reporter === "Both" ? "both ends" : `the ${flow.reporter.toLowerCase()}`}
        {flow.node && `, ${flow.node}`}, {planeText(flow.dataplane)}
      </dd>
      {service && <dt>Service</dt>}
      {service && <dd>{`${endText(service)}:${service.port}`}</dd>}
      <dt>from</dt>
      <dd class="mono">{addresses(flow.sourceAddresses)}</dd>
      <dt>to</dt>
      <dd class="mono">{addresses(flow.destinationAddresses)}</dd>
      <dt>connections</dt>
      <dd>{`${flow.started.toLocaleString("en")} began, ${flow.ended.toLocaleString("en")} ended, ${flow.live.toLocaleString("en")} open`}</dd>
      <dt>bytes</dt>
      <dd>{`${bytesText(flow.bytes)} there, ${bytesText(flow.replyBytes)} back`}</dd>
      <dt>last seen</dt>
      <dd>{clockText(Date.parse(flow.lastSeen))}</dd>
    </dl>
  );
}

function Actions({ flow }: { flow: Flow }) {
  return (
    <div class="actions">
      <button type="button" class="go" onClick={() => search(pairQuery(flow))}>
        Only this pair
      </button>
      <CopyButton label="Copy as query" text={keyQuery(flow)} />
      <button type="button" onClick={() => go({ query: keyQuery(flow), panel: "propose" })}>
        Propose a policy
      </button>
    </div>
  );
}
