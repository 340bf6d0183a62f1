import type { InitializeHook, ResolveHook } from 'node:module'
import type { MessagePort } from 'node:worker_threads'

/*
 * Runs in Node's thread for module hooks, which `fresh-modules.ts` registers. A module that is loaded anew has the number of
 * that load in its URL, and so have those that it imports, and those that they import: all but packages, and this one.
 */

/** What the hooks are told. */
export interface HookData {
  readonly port: MessagePort
  /** URLs of folders with modules that are never loaded anew. */
  readonly kept: readonly string[]
}

/** What the hooks tell: a file that a load led to. */
export interface Loaded {
  readonly load: string
  /** Its URL. */
  readonly file: string
}

/** The parameter of URLs that has the number of a load. */
export const LOAD = 'taskchart-load'

/* c8 ignore start -- what runs in the thread of the hooks is not measured */
let data: HookData | undefined

export const initialize: InitializeHook<HookData> = given => {
  data = given
}

export const resolve: ResolveHook = async (specifier, context, next) => {
  const resolved = await next(specifier, context)
  const load = loadIn(specifier) ?? loadIn(context.parentURL)
  // What tsx puts behind a file that it takes for CommonJS goes, for as that it would be loaded once.
  const [file = ''] = resolved.url.split(/\?|%3F/)
  if (!data || load === null || load === undefined || !file.startsWith('file:') || file.includes('/node_modules/')) return resolved
  if (data.kept.some(folder => file.startsWith(folder))) return resolved
  const { port } = data
  const loaded: Loaded = { load, file }
  port.postMessage(loaded)
  const isTaken = resolved.format === 'commonjs' && /\.tsx?$/.test(file)
  return { ...resolved, url: `${file}?${LOAD}=${load}`, ...(isTaken && { format: 'module' }) }
}

function loadIn(url: string | undefined): string | null | undefined {
  return url !== undefined && URL.canParse(url) ? new URL(url).searchParams.get(LOAD) : undefined
}
/* c8 ignore stop */
