import type { DataplaneModel, ModelDelta } from "../calc/model.ts";

/** Nothing new: the receiver retries what failed. */
export function emptyDelta(inSync: boolean): ModelDelta {
  const none = () => ({ set: [], remove: [] });
  return {
    inSync,
    ipSets: { set: [], change: [], remove: [] },
    policies: none(),
    profiles: none(),
    endpoints: none(),
    hostEndpoints: none(),
    nodes: none(),
    routes: none(),
    services: none(),
    problems: none(),
  };
}

/** All of a model, for a data plane that has heard nothing yet. */
export function wholeDelta(model: DataplaneModel, inSync: boolean): ModelDelta {
  const all = <T>(table: ReadonlyMap<string, T>) => ({
    set: [...table].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value),
    remove: [],
  });
  return {
    inSync,
    ipSets: { ...all(model.ipSets), change: [] },
    policies: all(model.policies),
    profiles: all(model.profiles),
    endpoints: all(model.endpoints),
    hostEndpoints: all(model.hostEndpoints),
    nodes: all(model.nodes),
    routes: all(model.routes),
    services: all(model.services),
    problems: all(model.problems),
    settings: model.settings,
  };
}
