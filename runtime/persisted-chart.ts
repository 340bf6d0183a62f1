import type { AnyMachineSnapshot, Snapshot } from 'xstate'

/** What XState persists of a child; its types do not show `_syncSnapshot` and that options are passed on. */
interface PersistedChild {
  readonly src: unknown
  readonly systemId: string | undefined
  readonly _syncSnapshot: boolean | undefined
  getPersistedSnapshot(options: unknown): unknown
}

/** What a flat chart's actor persists: all that XState persists of it, in the same form and order. */
export function persistedChart(snapshot: AnyMachineSnapshot, options?: unknown): Snapshot<unknown> {
  const { status, output, error, value, historyValue, context, children } = snapshot
  return { status, output, error, value, historyValue, context: withoutActors(context), children: persistedChildren(children, options) } as Snapshot<unknown>
}

function persistedChildren(children: Record<string, PersistedChild>, options: unknown): object {
  const persisted: Record<string, object> = {}
  for (const [id, child] of Object.entries(children)) {
    const { src, systemId, _syncSnapshot: syncSnapshot } = child
    persisted[id] = { snapshot: child.getPersistedSnapshot(options), src, systemId, syncSnapshot }
  }
  return persisted
}

/** A context with what stands for its actors in their place; itself if it holds none. */
function withoutActors(part: object): object {
  let copy: Record<string, unknown> | undefined
  for (const key of Object.keys(part)) {
    const member: unknown = part[key as keyof typeof part]
    const persisted: unknown = typeof member === 'object' && member !== null ? (isActor(member) ? member.toJSON() : withoutActors(member)) : member
    if (persisted === member) continue
    copy ??= (Array.isArray(part) ? [...part] : { ...part }) as Record<string, unknown>
    copy[key] = persisted
  }
  return copy ?? part
}

function isActor(value: object): value is { toJSON(): unknown } {
  return 'sessionId' in value && 'send' in value && 'ref' in value
}
