import { OPAQUE } from '../../../adapters/conformance/emitted.ts'

/** The value without members that have the default of their type, except in what is not A2A's. */
export function withoutDefaults(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDefaults)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(
    ([, value]) => value !== false && value !== '' && value !== 0 && !(Array.isArray(value) && value.length === 0)
  )
  return Object.fromEntries(
    members.map(([name, value]) => [name, OPAQUE.includes(name) ? value : withoutDefaults(value)])
  )
}
