import type { TaskState } from '../../machines/protocol/states.ts'
import type { Scope } from '../../runtime/store/rows.ts'
import type { ContextKey, Store } from '../../runtime/store/store.ts'
import { userName } from './write-queue.ts'

const READS = [
  'loadContext',
  'readSnapshot',
  'readWakes',
  'readTask',
  'readEvents',
  'readTaskMessages',
  'readJournal',
  'readMessages',
  'measureTasks',
  'listTasks',
  'readSend',
  'countOpen',
  'countStates',
  'countVersions',
  'readWebhooks',
  'readOpenWebhooks',
  'readTransitions'
] as const satisfies readonly (keyof Store)[]

/** A read of the store port. */
export type ReadName = (typeof READS)[number]

/** The reads of a store in a file or database. */
export type StoreReads = Required<Pick<Store, ReadName>>

/** A task that has not ended, as a reader of a whole store gets it. */
export interface OpenTask extends ContextKey {
  readonly taskId: string
  readonly state: TaskState
  /** See `TaskRow`. */
  readonly wakeAtMs?: number
  /** Missing if it is damaged, which is reported. */
  readonly snapshot?: string
}

/** Open tasks of all scopes: a portion of all. */
export interface OpenTasks {
  readonly tasks: readonly OpenTask[]
  /** Where the next portion begins; missing in the last one. */
  readonly next?: string
}

/** The reads of a store, and its scopes. */
export type StoreReader = StoreReads & {
  /** The definition of an agent by its digest. */
  readDefinition(digest: string): Promise<string | undefined>
  /**
   * Open tasks of all scopes, the first opened first, in portions of `limit`; `after` is '' or the `next` of the last
   * portion.
   */
  openTasks(limit: number, after: string): Promise<OpenTasks>
  /** Every tenant and principal that has data. */
  scopes(): Promise<Scope[]>
  /** May be called twice. Later calls of other methods reject. */
  close(): Promise<void>
}

/** The reads of the port, by one function that gets the name of the read. */
export function readsBy(read: (name: ReadName, args: readonly unknown[]) => Promise<unknown>): StoreReads {
  const reads: Partial<Record<ReadName, (...args: readonly unknown[]) => Promise<unknown>>> = {}
  for (const name of READS) reads[name] = async (...args) => read(name, args)
  return reads as StoreReads
}

/** The user whose quota a read counts against; empty for reads of the runtime. */
export function quotaUserOf(scope: unknown): string {
  const { tenant, principal } = Object(scope) as Partial<Scope>
  return tenant === undefined || principal === undefined ? '' : userName({ tenant, principal })
}

/** The scopes of a store with this tenant and this principal, each if it is given. */
export async function scopesOf(
  store: Pick<StoreReader, 'scopes'>,
  { tenant, principal }: { readonly tenant?: string | undefined; readonly principal?: string | undefined }
): Promise<Scope[]> {
  return (await store.scopes()).filter(
    scope => (tenant ?? scope.tenant) === scope.tenant && (principal ?? scope.principal) === scope.principal
  )
}
