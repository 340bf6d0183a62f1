import { PrivateProperty } from '../primitives/private-property.ts'

/** By the configuration of a chart, the one that its author wrote. */
const configs = new PrivateProperty<object, object>(Symbol.for('taskchart.config.1'))

/** By the guard of a transition, the one that its author wrote. */
const guards = new PrivateProperty<object, { readonly guard: unknown }>(Symbol.for('taskchart.guard.1'))

/** A chart's configuration as its author wrote it, without guards that were added to it. */
export function writtenConfig<Config extends object>(config: Config): Config {
  return (configs.get(config) ?? config) as Config
}

/** Notes what the author wrote in place of this configuration. */
export function noteWrittenConfig(config: object, written: object): void {
  configs.set(config, written)
}

/** The guard of a transition as its author wrote it; `undefined` if the author wrote none. */
export function writtenGuard(guard: unknown): unknown {
  const noted = typeof guard === 'function' ? guards.get(guard) : undefined
  return noted ? noted.guard : guard
}

/** Notes what the author wrote in place of this guard. */
export function noteWrittenGuard(guard: object, written: unknown): void {
  guards.set(guard, { guard: written })
}
