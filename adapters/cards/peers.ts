import type * as sdk from '@a2a-js/sdk'
import type * as jose from 'jose'
import { checkPackages } from '../peers/installed-packages.ts'

/** The packages that sign and verify cards: the official SDK and jose, both optional peers. */
export interface CardPeers {
  readonly sdk: typeof sdk
  readonly jose: typeof jose
}

/** Throws TypeError with the install command if one of them is not installed. */
export function checkCardPeers(resolve: (name: string) => unknown = name => import.meta.resolve(name)): void {
  try {
    resolve('@a2a-js/sdk')
    resolve('jose')
  } catch (cause) {
    throw new TypeError(
      'Cards are signed and verified by the official SDK and jose. Install them: npm install @a2a-js/sdk jose',
      { cause }
    )
  }
}

/** Loads both. Later calls get the same modules. */
export async function loadCardPeers(): Promise<CardPeers> {
  checkPackages(['@a2a-js/sdk', 'jose'])
  const [sdk, jose] = await Promise.all([import('@a2a-js/sdk'), import('jose')])
  return { sdk, jose }
}
