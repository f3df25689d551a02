import { Code, Text } from '@mantine/core'

/** Where no mail is sent, only the operator can make a link to set another password. */
export function ResetByOperator() {
  return (
    <Text size="sm">
      This server sends no mail. Ask the operator of this server for a link with which you set another
      password; it is made by <Code>adit admin user reset</Code>.
    </Text>
  )
}
