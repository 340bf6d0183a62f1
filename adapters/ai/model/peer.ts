import type * as ai from 'ai'

/** What calls models: an optional peer, loaded when the first task needs it. */
export type Ai = typeof ai

/** Throws TypeError that says how to install the AI SDK, if it is not there. */
export function checkAi(resolve: (name: string) => unknown = name => import.meta.resolve(name)): void {
  try {
    resolve('ai')
  } catch (cause) {
    throw new TypeError('taskchart/ai calls models with the AI SDK. Install it: npm install ai@6', { cause })
  }
}

/** Loads the AI SDK, once. Throws as {@link checkAi} does. */
export async function loadAi(): Promise<Ai> {
  checkAi()
  return import('ai')
}
