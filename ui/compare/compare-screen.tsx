import { useState } from "preact/hooks";
import { clockText, countText, endText, portText } from "../flows/flow-text.ts";
import { compareAgain, comparedTimes, comparison, go, query, runs, timeline, url } from "../page-state.ts";
import { portQuery, withoutTime, withTime } from "../query/query-text.ts";
import { runsWithin } from "../runs/draw-runs.ts";
import { DIFFERENCES, type DifferenceFilter, SPANS } from "../url-state.ts";
import type { ComparedPair, Difference, PairSide } from "../worker/compare-flows.ts";
import type { Comparison } from "../worker/messages.ts";
import { timeOfDay } from "./compared-times.ts";

const FILTERS: Readonly<Record<DifferenceFilter, string>> = {
  ...{ all: "All", changed: "Verdict changed", new: "New", gone: "Gone", same: "Same" },
};
/** A shape for eyes, a word for everyone. */
const DIFFERENCE_WORDS: Readonly<Record<Difference, string>> = {
  ...{ changed: "≠ verdict changed", new: "+ new", gone: "− gone", same: "= same" },
};
const VERDICTS: Readonly<Record<PairSide["verdict"], string>> = {
  ...{ allow: "→ allow", deny: "⊘ deny", partly: "◐ partly denied" },
};

/** Flows before and after a mark, side by side. */
export function CompareScreen() {
  return (
    <main class="compare">
      <Marks />
      <Compared />
    </main>
  );
}

function Marks() {
  const { mark, span } = url.value;
  const points = timeline.value?.points ?? [];
  const [first, last] = [points[0], points.at(-1)];
  const marks = first && last ? runsWithin(runs.value ?? [], first.since / 1_000, last.until / 1_000) : [];
  return (
    <div class="status">
      <TimeField mark={mark} />
      {marks.map(({ id, title, startedAt }) => {
        const at = Date.parse(startedAt);
        return (
          <button type="button" key={id} aria-pressed={mark === at} onClick={() => go({ mark: at })}>
            {clockText(at)} {title}
          </button>
        );
      })}
      <span class="dim">at most</span>
      {SPANS.toSorted((a, b) => Number(a) - Number(b)).map((one) => (
        <button type="button" key={one} aria-pressed={one === span} onClick={() => go({ span: one })}>
          {one} min
        </button>
      ))}
      {mark !== 0 && (
        <button type="button" onClick={compareAgain}>
          Again
        </button>
      )}
    </div>
  );
}

function TimeField({ mark }: { mark: number }) {
  const [isWrong, setWrong] = useState(false);
  const choose = (text: string) => {
    const at = timeOfDay(text, Date.now());
    setWrong(at === undefined);
    if (at !== undefined) go({ mark: at });
  };
  return (
    <label class="namespace">
      before and after{" "}
      <input
        type="text"
        key={mark}
        defaultValue={mark === 0 ? "" : clockText(mark)}
        placeholder="10:42:00"
        autocomplete="off"
        spellcheck={false}
        aria-invalid={isWrong}
        onChange={(event) => choose(event.currentTarget.value)}
      />
      {isWrong && (
        <span class="problem" role="alert">
          {" "}
          write a time such as 10:42
        </span>
      )}
    </label>
  );
}

function Compared() {
  const { mark } = url.value;
  if (mark === 0) {
    return (
      <section class="empty">
        <p>
          What did a change do to the traffic? Choose a time: write it above, take a run's, or press <kbd>c</kbd> on the
          strip.
        </p>
      </section>
    );
  }
  const found = comparison.value;
  if (!found) {
    const isUnknown = timeline.value !== undefined && comparedTimes.value === undefined;
    return (
      <section class="empty" aria-live="polite">
        <p>
          {isUnknown
            ? `Nothing is known before or after ${clockText(mark)}: flows are kept for an hour, and nodes send what they count every 15 seconds.`
            : "Comparing…"}
        </p>
        {isUnknown && (
          <button type="button" onClick={() => go({ mark: 0 })}>
            Choose another time
          </button>
        )}
      </section>
    );
  }
  if (found.refusal) {
    return (
      <section class="empty">
        <p class="problem" role="alert">
          {found.refusal.message}
        </p>
      </section>
    );
  }
  return <Differences found={found} />;
}

function Differences({ found }: { found: Comparison }) {
  const { counts, pairs, times, isCut } = found;
  const filter = url.value.differences;
  const shown = pairs.filter(({ difference }) => filter === "all" || difference === filter);
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const [before, after] = [timesText(times.since, times.before), timesText(times.after, times.until)];
  const text = withoutTime(query.value);
  return (
    <>
      <div class="status">
        <output>
          {countText(all, "pair")} of ends and ports
          {text !== "" && " of the query"}, {before} beside {after}
        </output>
        {DIFFERENCES.map((one) => (
          <button type="button" key={one} aria-pressed={one === filter} onClick={() => go({ differences: one })}>
            {FILTERS[one]} {(one === "all" ? all : counts[one]).toLocaleString("en")}
          </button>
        ))}
        {isCut && <span class="note">note: there are more flows than are compared: narrow the query</span>}
        {pairs.length < all && (
          <span class="note">note: of each, those of most connections are listed: narrow the query</span>
        )}
      </div>
      {shown.length === 0 ? (
        <section class="empty">
          <p>{all === 0 ? "There are no flows before or after." : "No pair is like that."}</p>
        </section>
      ) : (
        <section class="scroller" aria-label="Differences" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">from</th>
                <th scope="col">to</th>
                <th scope="col">port</th>
                <th scope="col">difference</th>
                <th scope="col">before</th>
                <th scope="col" class="number">
                  connections before
                </th>
                <th scope="col">after</th>
                <th scope="col" class="number">
                  connections after
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((pair) => (
                <Row key={portQuery(pair)} pair={pair} times={times} />
              ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  );
}

/** Leads to the flows of both times. */
function Row({ pair, times }: { pair: ComparedPair; times: Comparison["times"] }) {
  const { from, to, difference, before, after } = pair;
  const wanted = withTime(portQuery(pair), times.since, times.until);
  return (
    <tr class={difference === "changed" ? "changed" : undefined}>
      <th scope="row">
        <button
          type="button"
          class="link"
          title={`Flows of ${wanted}`}
          onClick={() => go({ query: wanted, screen: "flows" })}
        >
          {endText(from)}
        </button>
      </th>
      <td>{endText(to)}</td>
      <td class="mono">{portText(pair)}</td>
      <td>{DIFFERENCE_WORDS[difference]}</td>
      <Side side={before} />
      <Side side={after} />
    </tr>
  );
}

function Side({ side }: { side: PairSide | undefined }) {
  if (!side) {
    return (
      <>
        <td class="dim">none</td>
        <td />
      </>
    );
  }
  return (
    <>
      <td class={side.verdict === "allow" ? "good" : "bad"}>{VERDICTS[side.verdict]}</td>
      <td class="number">{side.connections.toLocaleString("en")}</td>
    </>
  );
}

function timesText(since: number, until: number): string {
  return `${clockText(since)} to ${clockText(until)}`;
}
