import { vendorNames } from "../api/names.ts";
import type { Client } from "../cluster/client.ts";
import { createEvents } from "../cluster/events.ts";
import type { EtcdDatastore } from "../datastore/open-datastore.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { ControllersConfig } from "./config.ts";
import type { ControllerContext } from "./controller-context.ts";
import type { ControllersMetrics } from "./controllers-metrics.ts";
import { compactEtcd } from "./copies/compaction.ts";
import { copyController } from "./copies/copy-controller.ts";
import { hostEndpointController } from "./host-endpoints/host-endpoint-controller.ts";
import { startInformers } from "./informers.ts";
import { ipamController } from "./ipam/ipam-controller.ts";
import { ipamReportController } from "./ipam/ipam-report-controller.ts";
import { loadBalancerController } from "./load-balancer/load-balancer-controller.ts";
import { profileController } from "./profiles/profile-controller.ts";
import { serviceAddressController } from "./services/service-address-controller.ts";
import { settingsController } from "./settings/settings-controller.ts";
import { type SettingsStore, settingsStore } from "./settings/settings-holder.ts";

export interface ControllersOptions {
  client: Client;
  /** Where our kinds are, if it is not the Kubernetes API. */
  datastore?: EtcdDatastore;
  config: ControllersConfig;
  metrics: ControllersMetrics;
  clock: Clock;
  log: Log;
}

export interface RunningControllers {
  settings: SettingsStore;
  /** Kinds whose first list is not in yet: until then nothing is decided. */
  waitingFor(): string[];
  stop(): Promise<void>;
}

/** Everything this program does while it leads. */
export function startControllers(options: ControllersOptions): RunningControllers {
  const { client, datastore, config, metrics, clock, log } = options;
  const { informers, waitingFor, stop } = startInformers(client, log);
  const settings = settingsStore();
  const events = createEvents(client, vendorNames.workloads.kubeControllers, clock, log);
  const context: ControllerContext = { client, informers, settings, config, events, metrics, clock, log };
  const loadBalancers = loadBalancerController(context);
  const controllers = [
    profileController(context),
    hostEndpointController(context),
    ipamController(context),
    loadBalancers,
    ipamReportController(context, loadBalancers.withoutAddress),
    serviceAddressController(context),
    ...(datastore ? [copyController(context, datastore)] : []),
    // Last: it notifies the others of the settings it finds.
    settingsController(context),
  ];
  const endCompaction = datastore && compactEtcd(context, datastore.etcd);
  return {
    settings,
    waitingFor,
    async stop() {
      endCompaction?.();
      await Promise.all(controllers.map((controller) => controller.stop()));
      await stop();
    },
  };
}
