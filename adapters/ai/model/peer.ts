import type * as ai from 'ai'
import { checkPackages, installable } from '../../peers/installed-packages.ts'
import type { CallOptions } from '../answer/answer-options.ts'

/** The AI SDK: an optional peer, loaded for the first task. */
export type Ai = typeof ai

/** Throws TypeError with the install command if the AI SDK is not installed. */
export function checkAi(resolve: (name: string) => unknown = name => import.meta.resolve(name)): void {
  try {
    resolve('ai')
  } catch (cause) {
    throw new TypeError(`taskchart/ai calls models with the AI SDK. Install it: npm install ${installable('ai')}`, {
      cause
    })
  }
}

/** Loads the AI SDK. Throws as {@link checkAi} does. */
export async function loadAi(): Promise<Ai> {
  checkAi()
  checkPackages(['ai'])
  return import('ai')
}

/** Has the model, not this process, fetch files by URL: a client could name a URL that only this process can reach. */
export const noLocalDownloads: NonNullable<CallOptions['experimental_download']> = async files => files.map(() => null)
