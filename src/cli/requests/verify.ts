// `adit requests verify`: whether the signature of a recorded webhook is valid.
import { API, type Exchange, SIGNATURE_SCHEMES, type SignatureResult } from '../../inspector/api.ts'
import { CommandError, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { findExchange } from './recorders.ts'

const EXPECTED = new Intl.ListFormat('en-US', { type: 'disjunction' }).format(SIGNATURE_SCHEMES)

interface VerifyInput {
  scheme: string
  id: string | undefined
}

export async function verify({ scheme, id }: VerifyInput, io: Io): Promise<void> {
  if (!SIGNATURE_SCHEMES.some((each) => each === scheme))
    throw new UsageError(`Invalid scheme "${scheme}" (expected ${EXPECTED}).`)
  const { recorder, exchange } = await findExchange(id)
  // Not a flag: other users of this machine can see those.
  const secret = io.interactive
    ? await io.ask('Secret of the webhook (not shown): ', { hidden: true })
    : await io.readLine()
  if (secret === '') throw new UsageError('No secret on standard input. Pipe it in, or use a terminal.')
  const result = await recorder.call<SignatureResult>('POST', API.signature(exchange.id), { scheme, secret })
  const message = `${result.message} (${checked(exchange)})`
  if (!result.valid) throw new CommandError(result.reason, message)
  io.data({ id: exchange.id, ...result }, message)
}

/** The latest request may be a replay. */
const checked = ({ id, replayOf }: Exchange) => (replayOf === undefined ? id : `${id}, replay of ${replayOf}`)
