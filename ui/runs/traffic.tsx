import type { PageTraffic } from "../../src/api/protocol/page-runs.ts";
import type { TrafficRow } from "../../src/api/protocol/traffic-report.ts";
import { durationText, trafficSentence } from "./run-text.ts";

export function Traffic({ traffic, isRunning }: { traffic: PageTraffic | undefined; isRunning: boolean }) {
  return (
    <section class="measured" aria-labelledby="measured-title">
      <h2 id="measured-title">Measured on live traffic</h2>
      {traffic ? (
        <>
          <table>
            <thead>
              <tr>
                <th scope="col">path</th>
                <th scope="col" class="number">
                  connections
                </th>
                <th scope="col" class="number">
                  lost
                </th>
                <th scope="col" class="number">
                  longest silence
                </th>
                <th scope="col" class="number">
                  datagrams unanswered
                </th>
              </tr>
            </thead>
            <tbody>
              {traffic.rows.map((row) => (
                <Row key={`${row.way} ${row.protocol}`} row={row} />
              ))}
            </tbody>
            <tfoot>
              <Sum sum={traffic.sum} />
            </tfoot>
          </table>
          <p>{trafficSentence(traffic)}</p>
        </>
      ) : (
        <p class="dim">{isRunning ? "Nothing was measured so far." : "Nothing was measured during this run."}</p>
      )}
    </section>
  );
}

function Row({ row }: { row: TrafficRow }) {
  const { way, protocol, reached, opened, lost, silenceMs, sent, unanswered } = row;
  const isTcp = protocol === "tcp";
  return (
    <tr>
      <th scope="row">
        {way} <span class="dim">{protocol.toUpperCase()}</span>
        {!reached && <span class="tag">never answered</span>}
      </th>
      <td class="number">{isTcp && opened.toLocaleString("en")}</td>
      <td class={lossClass(lost)}>{isTcp && lost.toLocaleString("en")}</td>
      <td class="number">{reached && durationText(silenceMs)}</td>
      <td class={lossClass(unanswered)}>
        {!isTcp && unanswered.toLocaleString("en")}
        {!isTcp && <span class="dim"> of {sent.toLocaleString("en")}</span>}
      </td>
    </tr>
  );
}

function Sum({ sum: { opened, lost, silenceMs, sent, unanswered } }: Pick<PageTraffic, "sum">) {
  return (
    <tr>
      <th scope="row">all paths</th>
      <td class="number">{opened.toLocaleString("en")}</td>
      <td class={lossClass(lost)}>{lost.toLocaleString("en")}</td>
      <td class="number">{durationText(silenceMs)}</td>
      <td class={lossClass(unanswered)}>
        {unanswered.toLocaleString("en")}
        <span class="dim"> of {sent.toLocaleString("en")}</span>
      </td>
    </tr>
  );
}

const lossClass = (count: number) => `number ${count > 0 ? "bad" : "calm"}`;
