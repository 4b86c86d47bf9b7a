"""airflow.exceptions"""


class AirflowException(Exception):
    pass


class AirflowFailException(AirflowException):
    pass
