import type { InitializeHook, ResolveHook } from 'node:module'
import type { MessagePort } from 'node:worker_threads'

/*
 * Runs in Node's thread for module hooks, which `reloader.ts` registers. The URL of a reloaded module carries the
 * number of that load. The hook passes the number on to its imports, transitively, except to packages and to taskchart
 * itself.
 */

export interface HookData {
  readonly port: MessagePort
  /** URLs of folders whose modules are never reloaded. */
  readonly kept: readonly string[]
}

/** A message from the hooks: a file that a load imported. */
export interface Loaded {
  readonly load: string
  /** A `file:` URL. */
  readonly file: string
}

/** The URL parameter with the number of a load. */
export const LOAD = 'taskchart-load'

/* c8 ignore start -- coverage does not measure the thread of the hooks */
let data: HookData | undefined

export const initialize: InitializeHook<HookData> = given => {
  data = given
}

export const resolve: ResolveHook = async (specifier, context, next) => {
  const resolved = await next(specifier, context)
  const load = loadIn(specifier) ?? loadIn(context.parentURL)
  // tsx appends a suffix to files that it loads as CommonJS. It is removed, since such a module would be loaded only
  // once.
  const [file = ''] = resolved.url.split(/\?|%3F/)
  if (!data || load === null || load === undefined || !file.startsWith('file:') || file.includes('/node_modules/'))
    return resolved
  if (data.kept.some(folder => file.startsWith(folder))) return resolved
  const { port } = data
  const loaded: Loaded = { load, file }
  port.postMessage(loaded)
  const isCommonJs = resolved.format === 'commonjs' && /\.tsx?$/.test(file)
  return { ...resolved, url: `${file}?${LOAD}=${load}`, ...(isCommonJs && { format: 'module' }) }
}

function loadIn(url: string | undefined): string | null | undefined {
  return url !== undefined && URL.canParse(url) ? new URL(url).searchParams.get(LOAD) : undefined
}
/* c8 ignore stop */
