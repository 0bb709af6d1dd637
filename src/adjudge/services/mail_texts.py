"""The texts of mails to users, in English and Chinese: the recipient's language is unknown."""

from __future__ import annotations


def password_reset_text(name: str, link: str) -> tuple[str, str]:
    """The subject and the text of a password reset."""
    return "Adjudge: set a new password / 重设密码", (
        f"Somebody, probably you, asked for a new password of the account {name}.\n"
        "To set one, open this link within an hour. It works once:\n\n"
        f"{link}\n\n"
        "If it was not you, ignore this mail; the password stays as it is.\n\n"
        f"有人（可能是您）请求重设账户 {name} 的密码。请在一小时内打开上面的链接，链接只能使用一次。"
        "如果不是您本人操作，请忽略此邮件，密码不会改变。\n"
    )


def invitation_text(link: str, note: str | None) -> tuple[str, str]:
    """The subject and the text of an invitation."""
    about = f" ({note})" if note else ""
    return "Adjudge: invitation / 邀请", (
        f"You are invited to create an account{about}. Open this link:\n\n"
        f"{link}\n\n"
        "您被邀请注册账户，请打开上面的链接。\n"
    )
