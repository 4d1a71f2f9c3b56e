import { bytesText, endText } from "../flows/flow-text.ts";
import { search } from "../page-state.ts";
import type { MapNode, MapPicture } from "./map-picture.ts";
import { edgeQuery } from "./picked.ts";

/** A table that is longer is not read to its end. */
const MOST_ROWS = 500;

/** The map as text: a row for each pair, denials first. */
export function MapTable({ picture: { nodes, edges } }: { picture: MapPicture }) {
  const shown = edges.slice(-MOST_ROWS).toReversed();
  return (
    <section class="scroller" aria-label="Pairs" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">one end</th>
            <th scope="col">other end</th>
            <th scope="col">who began</th>
            <th scope="col" class="number">
              flows
            </th>
            <th scope="col" class="number">
              denied
            </th>
            <th scope="col" class="number">
              bytes
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((edge) => {
            const ends = [nodes[edge.a] as MapNode, nodes[edge.b] as MapNode] as const;
            const [a, b] = ends.map(endText);
            return (
              <tr key={`${a} ${b}`}>
                <th scope="row">
                  <button type="button" class="link" onClick={() => search(edgeQuery(edge, ends))}>
                    {a}
                  </button>
                </th>
                <td>{b}</td>
                <td class="dim">{edge.forth > 0 && edge.back > 0 ? "both" : edge.forth > 0 ? a : b}</td>
                <td class="number">{(edge.forth + edge.back).toLocaleString("en")}</td>
                <td class={edge.denied > 0 ? "number bad" : "number"}>{edge.denied.toLocaleString("en")}</td>
                <td class="number">{bytesText(edge.bytes)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {edges.length > MOST_ROWS && <p class="note">note: {edges.length - MOST_ROWS} more pairs; narrow the query</p>}
    </section>
  );
}
