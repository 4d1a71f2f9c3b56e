import { expect } from "vitest";
import type { Cluster } from "./cluster.ts";
import { NAMESPACE, podsOf, type Workload } from "./workloads.ts";

/** Runs in a test pod: asks every URL at once, a new connection each, and prints those without an answer. */
const ASK = `
const urls = JSON.parse(process.argv[1]);
const ask = (url) => new Promise((done) => {
  const request = require("http").get(url, { agent: false, timeout: 3000 }, (answer) => done(answer.statusCode === 200 ? undefined : url + " " + answer.statusCode));
  request.on("timeout", () => request.destroy(new Error("timeout"))).on("error", (error) => done(url + " " + (error.code || error.message)));
});
Promise.all(urls.map(ask)).then((answers) => console.log(JSON.stringify(answers.filter(Boolean))));
`;

/** From each node's pod of a workload: the URLs that did not answer, with the reason. */
async function unanswered(cluster: Cluster, from: Workload, urls: readonly string[]): Promise<string[]> {
  const pods = await podsOf(cluster, from);
  const asked = pods.map(async ({ metadata, spec }) => {
    const { code, stdout, stderr } = await cluster.tryKubectl(
      ...["exec", "-n", NAMESPACE, metadata.name, "--", "node", "-e", ASK, JSON.stringify(urls)],
    );
    const failures = code === 0 ? (JSON.parse(stdout) as string[]) : [`kubectl exec: ${stderr.trim()}`];
    return failures.map((failure) => `${from} on ${spec.nodeName}: ${failure}`);
  });
  return (await Promise.all(asked)).flat();
}

/** Asked for before each attempt: a pod of a node that has just booted shows its address of before until its kubelet has started it again. */
type Urls = () => Promise<readonly string[]>;

/** Waits until every URL answers every one of them. */
export async function allAnswer(cluster: Cluster, from: readonly Workload[], urls: Urls): Promise<void> {
  const failures = async () => {
    const asked = await urls();
    return (await Promise.all(from.map((name) => unanswered(cluster, name, asked)))).flat();
  };
  await expect.poll(failures, { message: "requests without an answer", timeout: 120_000 }).toEqual([]);
}

/** Waits until no URL answers any of them. */
export async function noneAnswers(cluster: Cluster, from: Workload, urls: Urls): Promise<void> {
  const asked = await urls();
  const expected = (await podsOf(cluster, from)).length * asked.length;
  const failures = async () => (await unanswered(cluster, from, asked)).length;
  await expect.poll(failures, { message: "requests that the policy denies", timeout: 120_000 }).toBe(expected);
}
