import { useEffect, useState } from "preact/hooks";
import type { RuleStatistics } from "../api/flow.ts";
import { type ApiRefusal, askFlows, type FlowsApi, isRefusal } from "../api/flows-api.ts";
import { clockText, countText } from "../flows/flow-text.ts";
import { api, go, previewWithout, url } from "../page-state.ts";
import { RULE_FILTERS, type RuleFilter } from "../url-state.ts";
import { RuleFlows } from "./rule-flows.tsx";
import { neverHit, type RuleRow, ruleRows } from "./rule-rows.ts";

const ASKED_EVERY_MS = 15_000;

const FILTERS: Readonly<Record<RuleFilter, string>> = { all: "All", never: "Never hit", denying: "Denying" };

interface Statistics {
  policies: readonly RuleStatistics[];
  rules: readonly RuleStatistics[];
}

/** What each policy and rule decided in the last hour, and those that decided nothing. */
export function PoliciesScreen() {
  const [statistics, setStatistics] = useState<Statistics>();
  const [refusal, setRefusal] = useState<ApiRefusal>();
  const asked = api.value;
  useEffect(() => {
    if (!asked) return undefined;
    const left = new AbortController();
    const askAgain = () =>
      statisticsOf(asked, left.signal).then(
        (answer) => {
          setStatistics(answer);
          setRefusal(undefined);
        },
        (error: unknown) => !left.signal.aborted && isRefusal(error) && setRefusal(error),
      );
    void askAgain();
    const timer = setInterval(askAgain, ASKED_EVERY_MS);
    return () => {
      left.abort();
      clearInterval(timer);
    };
  }, [asked]);
  return (
    <main class="policies">
      {refusal && <p class="problem">{refusal.message}</p>}
      {!statistics && !refusal && <p class="dim">Asking…</p>}
      {statistics && <Table {...statistics} />}
    </main>
  );
}

async function statisticsOf(asked: FlowsApi, signal: AbortSignal): Promise<Statistics> {
  const by = (what: "policy" | "rule") =>
    askFlows<{ rules: RuleStatistics[] }>(asked, "statistics", { by: what }, signal);
  const [policies, rules] = await Promise.all([by("policy"), by("rule")]);
  return { policies: policies.rules, rules: rules.rules };
}

function Table({ policies, rules }: Statistics) {
  const filter = url.value.rules;
  const rows = ruleRows(policies, rules, filter);
  const [looked, setLooked] = useState("");
  return (
    <>
      <div class="status">
        <output>
          {countText(policies.length, "policy", "policies")}, {countText(neverHit(rules), "rule")} never hit in the last
          hour
        </output>
        {RULE_FILTERS.map((one) => (
          <button type="button" key={one} aria-pressed={one === filter} onClick={() => go({ rules: one })}>
            {FILTERS[one]}
          </button>
        ))}
      </div>
      {rows.length === 0 ? (
        <section class="empty">
          <p>{policies.length === 0 ? "There is no policy, and no flow passed one." : "No rule is like that."}</p>
        </section>
      ) : (
        <section class="scroller" aria-label="Policies" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">policy and rule</th>
                <th scope="col">tier</th>
                <th scope="col">kind</th>
                <th scope="col" class="number">
                  connections allowed
                </th>
                <th scope="col" class="number">
                  packets denied
                </th>
                <th scope="col" class="number">
                  connections passed
                </th>
                <th scope="col">last hit</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <Row key={row.key} row={row} look={() => setLooked(row.key)} />
              ))}
            </tbody>
          </table>
        </section>
      )}
      {rows.length > 0 && <RuleFlows row={rows.find(({ key }) => key === looked)} />}
    </>
  );
}

function Row({ row, look }: { row: RuleRow; look(): void }) {
  const show = () => go({ query: row.query, screen: "flows" });
  return (
    <tr class={row.isRule ? "rule" : undefined} onMouseEnter={look}>
      <th scope="row">
        <button type="button" class="link" title={`Flows of ${row.query}`} onFocus={look} onClick={show}>
          {row.title}
        </button>
        {row.gone !== "" && (
          <button
            type="button"
            class="aside"
            aria-label={`what if it were gone? ${row.title}`}
            onClick={() => previewWithout(row.gone)}
          >
            what if it were gone?
          </button>
        )}
        {row.staged && <span class="tag">staged</span>}
      </th>
      <td>{row.isRule ? "" : row.tier}</td>
      <td class="dim">{row.isRule ? "" : row.kind}</td>
      <td class="number">{row.allowed.connections.toLocaleString("en")}</td>
      <td class={row.denied.packets > 0 ? "number bad" : "number"}>{row.denied.packets.toLocaleString("en")}</td>
      <td class="number">{row.passed.connections.toLocaleString("en")}</td>
      <td>{row.lastHit === undefined ? <span class="tag">never</span> : clockText(row.lastHit)}</td>
    </tr>
  );
}
