import { existsSync } from 'node:fs'
import type { Plugin } from 'vite'

/** Uses `NAME.browser.ts` in place of `NAME.ts` where there is one. */
export const browserFiles: Plugin = {
  name: 'browser-files',
  enforce: 'pre',
  async resolveId(source, importer, options) {
    if (!source.startsWith('.') || importer?.endsWith('.browser.ts')) return undefined
    const found = await this.resolve(source, importer, { ...options, skipSelf: true })
    const other = found?.id.replace(/\.ts$/, '.browser.ts')
    return other !== undefined && other !== found?.id && existsSync(other) ? other : found
  }
}
