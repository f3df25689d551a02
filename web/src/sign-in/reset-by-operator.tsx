import { Code, Text } from '@mantine/core'

/** Help for servers without email, where only the operator can create a password reset link. */
export function ResetByOperator() {
  return (
    <Text size="sm">
      This server does not send email. Ask your server admin for a password reset link, created with{' '}
      <Code>adit admin user reset</Code>.
    </Text>
  )
}
