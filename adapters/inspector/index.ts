/**
 * taskchart/inspector: shows what an agent's actors do, live, to a page in a browser and to Stately's inspector.
 * `serve(runtime, { port, inspector: inspect() })`.
 */
export { inspect } from './inspect.ts'
