// How many credentials were verified, by verdict and by where it came from.

/** By where a verdict comes from: the cache, the database, or the format of the credential alone. */
const VERDICTS = {
  hit: ['valid', 'unknown', 'revoked', 'expired', 'archived'],
  miss: ['valid', 'unknown', 'revoked', 'expired', 'archived', 'unavailable'],
  none: ['malformed', 'other_kind'],
} as const

type Verdicts = typeof VERDICTS
type Counts<C extends keyof Verdicts> = Record<Verdicts[C][number], number>

const zeros = <C extends keyof Verdicts>(cache: C) =>
  Object.fromEntries(VERDICTS[cache].map((verdict) => [verdict, 0])) as Counts<C>

export class VerdictCounts {
  readonly hit = zeros('hit')
  readonly miss = zeros('miss')
  readonly none = zeros('none')

  read(): [{ cache: string; verdict: string }, number][] {
    const { hit, miss, none } = this
    return Object.entries({ hit, miss, none }).flatMap(([cache, counts]) =>
      Object.entries(counts).map(([verdict, count]): [{ cache: string; verdict: string }, number] => [
        { cache, verdict },
        count,
      ]),
    )
  }
}
