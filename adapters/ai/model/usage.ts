/** How many tokens models took in and gave, as far as they tell it. */
export interface Usage {
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly totalTokens?: number
}

const KEYS = ['inputTokens', 'outputTokens', 'totalTokens'] as const

/** The tokens of several calls; what none of them tells stays out. */
export function sumOf(usages: readonly { readonly [key in (typeof KEYS)[number]]?: number | undefined }[]): Usage {
  const told = KEYS.map(key => [key, usages.flatMap(usage => usage[key] ?? [])] as const)
  return Object.fromEntries(told.filter(([, counts]) => counts.length > 0).map(([key, counts]) => [key, counts.reduce((sum, count) => sum + count)]))
}
