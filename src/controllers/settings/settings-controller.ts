import { isDeepStrictEqual } from "node:util";
import { vendorNames } from "../../api/names.ts";
import type { KubeControllersConfiguration } from "../../api/resources/kube-controllers-configuration.ts";
import type { Controller } from "../../cluster/controller.ts";
import { runController, watching } from "../../cluster/controller.ts";
import { type ControllerContext, observed, queueOf } from "../controller-context.ts";
import { CONFIGURATIONS, typeOf } from "../stored-kinds.ts";
import { effectiveSettings, type Settings, settingsProblems } from "./effective-settings.ts";

const NAME = vendorNames.singleton;

/**
 * Reads the one configuration, makes it (with nothing but its name) where there is none, and says in its status what is in force.
 * While the specification is wrong, what was in force before stays so; the status is the memory of that across restarts.
 */
export function settingsController(context: ControllerContext): Controller {
  const { client, informers, settings, config, events } = context;
  const { configurations } = informers;
  const onEtcd = config.etcd !== undefined;

  /** Undefined: wrong from the start. Then nothing is known, and taking defaults for it could remove what is there. */
  const inForce = (live: KubeControllersConfiguration): Settings | undefined => {
    const problems = settingsProblems(live);
    if (problems.length === 0) return effectiveSettings(live.spec, config.overrides, onEtcd);
    events.warn(live, "InvalidConfiguration", `Ignored: ${problems.join(" ")}`);
    const before = live.status?.runningConfig;
    return before && effectiveSettings(before, config.overrides, onEtcd);
  };

  const reconcile = async (): Promise<void> => {
    const live = configurations.get(NAME);
    if (!live) {
      await client.create(CONFIGURATIONS, { ...typeOf(CONFIGURATIONS), metadata: { name: NAME } });
      return;
    }
    const running = inForce(live);
    if (!running) return;
    settings.set(running);
    if (isDeepStrictEqual(live.status?.runningConfig, running)) return;
    await client.replace(CONFIGURATIONS, { ...live, status: { runningConfig: running } }, { subresource: "status" });
  };

  const controller = runController({
    name: "settings",
    watches: [watching(configurations, () => [NAME])],
    reconcile: observed(context, "settings", reconcile),
    queue: queueOf(context),
    log: context.log,
  });
  controller.enqueue(NAME);
  return controller;
}
