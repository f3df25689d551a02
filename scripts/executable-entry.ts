// The main module of the executables.
import { main } from '../src/main.ts'

process.exitCode = await main(process.argv.slice(2))
