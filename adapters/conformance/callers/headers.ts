import type { Terms } from './caller.ts'

/** The headers that carry terms (§3.2.6), by the names that the version has for them. */
export function headersOf({ version = '', extensions = [], credentials = '', parameters = {} }: Terms, extensionsHeader = 'a2a-extensions'): Record<string, string> {
  return {
    ...(version !== '' && { 'a2a-version': version }),
    ...(extensions.length > 0 && { [extensionsHeader]: extensions.join(',') }),
    ...(credentials !== '' && { authorization: `Bearer ${credentials}` }),
    ...parameters
  }
}
