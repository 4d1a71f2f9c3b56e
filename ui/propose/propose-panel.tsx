import { useEffect, useState } from "preact/hooks";
import { type FlowProposal, PROPOSAL_KINDS, type ProposalKind } from "../../src/api/protocol/flow-proposal.ts";
import { type ApiRefusal, askFlows, type FlowsApi, isRefusal } from "../api/flows-api.ts";
import { CopyButton } from "../copy-button.tsx";
import { clockText, countText } from "../flows/flow-text.ts";
import { api, go, previewText, query, url } from "../page-state.ts";
import { SidePanel } from "../side-panel.tsx";
import { proposedDocuments, proposedText } from "./proposed-text.ts";

const KINDS: Readonly<Record<ProposalKind, string>> = { kubernetes: "of Kubernetes", vendor: "of vendor.io/v3" };
const FILE = "proposed-policies.yaml";

interface Answered {
  to: string;
  proposal?: FlowProposal;
  refusal?: ApiRefusal;
}

/** Policies that would allow the flows of the query, to be read, previewed and applied elsewhere. */
export function ProposePanel() {
  const [answered, setAnswered] = useState<Answered>();
  const { api: kind, egress, addresses } = url.value;
  const asked = api.value;
  const text = query.value;
  const parameters = { query: text, kind, egress, addresses };
  const to = JSON.stringify([asked, parameters]);
  useEffect(() => {
    if (!asked) return undefined;
    const left = new AbortController();
    void answerTo(to, asked, parameters, left.signal).then((answer) => left.signal.aborted || setAnswered(answer));
    return () => left.abort();
  }, [to]);
  const current = answered?.to === to ? answered : undefined;
  return (
    <SidePanel label="Propose" isWide close={() => go({ panel: "none" })}>
      <h2>Policies from traffic</h2>
      <p class="dim">
        {text === "" ? "Of all flows of the last hour." : "Of the flows of the query: "}
        {text !== "" && <code>{text}</code>}
      </p>
      <div class="choice-line">
        {PROPOSAL_KINDS.map((one) => (
          <button type="button" key={one} aria-pressed={one === kind} onClick={() => go({ api: one })}>
            {KINDS[one]}
          </button>
        ))}
        <label>
          <input type="checkbox" checked={egress} onChange={(event) => go({ egress: event.currentTarget.checked })} />{" "}
          what workloads send, too
        </label>
        <label>
          <input
            type="checkbox"
            checked={addresses}
            onChange={(event) => go({ addresses: event.currentTarget.checked })}
          />{" "}
          addresses outside
        </label>
      </div>
      {!current && <p class="dim">Asking…</p>}
      {current?.refusal && (
        <p class="problem" role="alert">
          {current.refusal.message}
        </p>
      )}
      {current?.proposal && <Proposed proposal={current.proposal} />}
    </SidePanel>
  );
}

async function answerTo(
  to: string,
  asked: FlowsApi,
  parameters: Record<string, string | boolean>,
  signal: AbortSignal,
): Promise<Answered> {
  try {
    return { to, proposal: await askFlows<FlowProposal>(asked, "proposals", parameters, signal) };
  } catch (error) {
    return isRefusal(error) ? { to, refusal: error } : { to };
  }
}

function Proposed({ proposal }: { proposal: FlowProposal }) {
  const { policies, left, notes, since, until } = proposal;
  const rules = policies.reduce((sum, policy) => sum + policy.rules.length, 0);
  const text = proposedText(proposal);
  return (
    <>
      <output>
        {policies.length === 0
          ? "There are no flows that a policy can be made of."
          : `${countText(policies.length, "policy", "policies")} with ${countText(rules, "rule")}, from ${clockText(since)} to ${clockText(until)}.`}
      </output>
      {policies.length > 0 && (
        <>
          <div class="actions">
            <button type="button" class="go" onClick={() => previewText(text)}>
              Preview this
            </button>
            <CopyButton label="Copy" text={text} />
            <button type="button" onClick={() => save(text)}>
              Save
            </button>
          </div>
          <p>
            The page writes nothing to the cluster. To apply what you saved: <code>kubectl apply -f {FILE}</code>
          </p>
          {proposedDocuments(proposal).map(({ name, text: document }) => (
            <pre key={name} tabIndex={0}>
              {document.trimEnd()}
            </pre>
          ))}
        </>
      )}
      {notes.map((note) => (
        <p key={note} class="note">
          note: {note}
        </p>
      ))}
      {left.length > 0 && (
        <section>
          <h3>No rule for</h3>
          <ul class="misses">
            {left.map(({ what, why, connections }) => (
              <li key={`${what} ${why}`}>
                {what}: {why} <span class="dim">({countText(connections, "connection")})</span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** A file of the browser's own: nothing is asked of a server. */
function save(text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
  link.download = FILE;
  link.click();
  URL.revokeObjectURL(link.href);
}
