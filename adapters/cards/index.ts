/** Signed cards (§8.4): `cardSigner` for servers, `cardVerifier` for clients. */
export { cardSigner } from './card-signer.ts'
export { cardVerifier } from './card-verifier.ts'
export type { CardSignerOptions } from './card-signer.ts'
export type { CardVerifierOptions } from './card-verifier.ts'
export type { PrivateKey } from './card-signer.ts'
export type { VerifyCard } from '../client/options.ts'
