import type { Container, Pod } from "../controllers/workload-types.ts";

/** What a container on a simulated node does. It is healthy unless an annotation or a rule says otherwise. */
export type Behaviour =
  | { does: "run" }
  | { does: "runUnready" }
  | { does: "failToPull" }
  | { does: "readyAfter"; ms: number }
  | { does: "exit"; code: number };

const BEHAVIOUR_ANNOTATION = "local.vendor.io/behaviour";

/** Containers the cluster's maker wants to behave in some way, by their image or by anything: `[/broken/, "crash"]`. */
export type ContainerRule = readonly [which: RegExp | ((pod: Pod, container: Container) => boolean), behaviour: string];

/** Such a pod does what it is asked to instead of running its program. */
export function asksForTrouble({ metadata }: Pod): boolean {
  return metadata.annotations?.[BEHAVIOUR_ANNOTATION] !== undefined;
}

export function behaviourOf(pod: Pod, container: Container, rules: readonly ContainerRule[]): Behaviour {
  const asked = pod.metadata.annotations?.[BEHAVIOUR_ANNOTATION];
  const ruled = rules.find(([which]) =>
    typeof which === "function" ? which(pod, container) : which.test(container.image ?? ""),
  )?.[1];
  return parseBehaviour(asked ?? ruled ?? (isNodeRemoval(container) ? "complete" : "run"));
}

/** `vendor node remove`: a simulated node has nothing in its kernel, so it is done at once. */
function isNodeRemoval({ command = [], args = [] }: Container): boolean {
  return [...command, ...args].slice(0, 3).join(" ") === "vendor node remove";
}

/** `crash`, `never-ready`, `pull-error`, `slow:500`, `exit:3`, `complete`. What makes no sense is taken for `run`. */
function parseBehaviour(text: string): Behaviour {
  const [word = "", value = ""] = text.trim().split(":", 2);
  const number = Number(value);
  switch (word) {
    case "crash":
      return { does: "exit", code: 1 };
    case "never-ready":
      return { does: "runUnready" };
    case "pull-error":
      return { does: "failToPull" };
    case "slow":
      return { does: "readyAfter", ms: Number.isFinite(number) ? number : 0 };
    case "exit":
      return { does: "exit", code: Number.isInteger(number) ? number : 1 };
    case "complete":
      return { does: "exit", code: 0 };
    default:
      return { does: "run" };
  }
}
