// argv → exit code. Called by bin/adit.js, which has checked the Node version.
import { runCli } from './cli/run.ts'

export const main = (words: string[]): Promise<number> => runCli(words)
