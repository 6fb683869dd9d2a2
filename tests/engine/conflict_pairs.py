"""Sentences of our own: pairs in which the second outdates the first, surely or maybe, and pairs that are both true."""

OUTDATED = [
    ("User lives in Seattle", "User moved to Austin"),
    ("User works as a nurse", "User is now a software developer"),
    ("User drives a Subaru Outback", "User bought a Tesla Model 3 and sold the Subaru"),
    ("The user's favourite colour is blue", "The user's favourite colour is now green"),
    ("User is vegetarian", "User started eating meat again"),
    ("The API runs on Python 3.9", "The API was upgraded to Python 3.12"),
    ("The team meets on Mondays at 10", "The team meeting moved to Thursdays at 14:00"),
    ("John is married to Anna", "John and Anna got divorced"),
    ("The project deadline is March 3", "The project deadline was postponed to April 15"),
    ("User weighs 82 kg", "User weighs 76 kg"),
    ("User is allergic to peanuts", "User is no longer allergic to peanuts"),
    ("We deploy with Jenkins", "We deploy with GitHub Actions"),
    ("Maria works at Google", "Maria joined Microsoft"),
    ("The database is MySQL", "We migrated the database to PostgreSQL"),
    ("User prefers tea over coffee", "User prefers coffee over tea these days"),
    ("User is 34 years old", "User turned 35"),
    ("User's phone number is 555-0142", "User's phone number is 555-0199"),
    ("The office is on 5th Street", "The office relocated to Harbour Road"),
    ("User has no pets", "User adopted a kitten"),
    ("Maya is allergic to penicillin", "The test showed that Maya is not allergic to penicillin"),
    ("The user has two cats", "The user has three cats"),
]

LEFT_TO_A_READER = [
    ("The user's manager is Tom", "The user's new manager is Claire"),
]

TRUE_TOGETHER = [
    ("User lives in Seattle", "User likes hiking"),
    ("The nightly backup of db1 runs at 02:00", "The nightly backup of db2 runs at 04:00"),
    ("User lives in Seattle", "User works as a nurse"),
    ("User moved to Austin", "User works remotely from home in Austin"),
    ("User likes tea", "User likes dark chocolate"),
    ("User prefers dark mode in the editor", "User prefers window seats on flights"),
    ("User is planning a trip to Japan in March", "User visited Italy in 2019"),
    ("User speaks Spanish", "User speaks German"),
    ("User's sister lives in Boston", "User lives in Chicago"),
    ("User's mother is called Helen", "User's father is called Peter"),
    ("The API runs on Python 3.12", "The database is PostgreSQL 16"),
    ("User is allergic to peanuts", "User is vegetarian"),
    ("User plays the guitar", "User plays tennis on Sundays"),
    ("User studied physics at MIT", "User works at a startup in Boston"),
    ("User bought a new bike", "User drives a Tesla"),
    ("The team meets on Mondays at 10", "The team has six members"),
    ("User's birthday is on May 4", "User's wedding anniversary is on June 12"),
    ("User read Dune last month", "User is reading Foundation"),
    ("The frontend uses React", "The backend uses Django"),
    ("User wants to learn Rust", "User has written Python for ten years"),
    ("Anna likes sushi", "John likes pizza"),
    ("Anna lives in Paris", "John lives in Berlin"),
    ("User goes to the gym three times a week", "User sleeps seven hours a night"),
    ("User lives in Berlin", "User was born in Munich"),
    ("User takes vitamin D", "User takes ibuprofen for headaches"),
    # another thing of the same kind
    ("The staging server has 16 GB", "The production server has 64 GB"),
    ("staging has 16 GB", "production has 64 GB"),
    ("User ran the Berlin marathon in 2021", "User ran the Oslo marathon in 2023"),
    ("make smoke-mail checks that mail is sent", "make smoke-auth checks that logins work"),
    ("The checkout listens on port 8080", "The ledger listens on port 8081"),
    ("checkout runs on port 8080", "ledger runs on port 8090"),
    ("Release 2.3 shipped on 3 March", "Release 2.4 shipped on 21 April"),
    ("Anna Berg works at Norvik", "Tomas Lund works at Halden"),
    ("Anna Berg's phone number is 555-0142", "Tomas Lund's phone number is 555-0199"),
]

# The newer one says the same in other words: nothing is outdated.
SAID_AGAIN = [
    ("The harbour scene needs 42 extras.", "We have to book forty-two extras for the harbour scene."),
    ("User dislikes coriander.", "Coriander is something the user really does not like to eat."),
    ("Mrs Haddad can't take aspirin.", "Aspirin is contraindicated for Mrs Haddad."),
    (
        "On 29 June we give the summer concert in Holy Trinity; people are let in from 19:00.",
        "Summer concert takes place on 29 June at Holy Trinity, doors open at seven.",
    ),
]
